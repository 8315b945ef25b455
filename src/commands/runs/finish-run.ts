import { resolve } from 'node:path';
import { ignoredProxyVariable } from '../../config/check-target.ts';
import { ExpungeError, exitCodes, messageOf } from '../../errors.ts';
import { handOverMs } from '../../ledger/active-time.lua.ts';
import { judgeRun } from '../../ledger/conclusion.ts';
import { expireRun, markDelivered } from '../../ledger/end-run.ts';
import { type HaltExample, haltExamples, haltSelection } from '../../ledger/halt-examples.ts';
import { nothingMeasured, readMeasures } from '../../ledger/measures.ts';
import { countPending, isFinalized, type Run, readRun, sumActiveMs } from '../../ledger/run.ts';
import { toExitCode } from '../../ledger/summary.ts';
import { checkConservation, tallyIfFinalized, tallyLedger } from '../../ledger/tally.ts';
import { readProof } from '../../ledger/verification.ts';
import { rehearsalFacts } from '../../model/rehearsal.ts';
import { type Advice, adviceText } from '../../model/to-type.ts';
import { hasOtherForegroundCommand, removeOwnQueue } from '../../operations/liveness.ts';
import type { Session } from '../../operations/session.ts';
import { type RunContext, standingSummary } from '../../operations/take-snapshot.ts';
import { describeRejection, isRedisError } from '../../redis/errors.ts';
import { type RunFiles, writeRunFiles } from '../../report/run-files.ts';
import { type Ending, type EndingKind, endingText } from '../../terminal/ending.ts';
import { startProgress } from '../../terminal/live-panel.ts';
import { paceFacts, paceLines, paceSummary } from '../../terminal/pace.ts';
import { brakeTexts } from '../../terminal/rehearsal-text.ts';
import { commandLine, styleOf } from '../../terminal/style.ts';
import { sleepUntilAborted } from '../../wait.ts';
import { lostReason } from '../../worker/run-stopper.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { type Interrupts, listenForInterrupts } from '../interrupts.ts';
import { infoWriter, progressStream, whoAmI, writeWarnings } from '../session.ts';

/** A run whose command ends. */
export type Finish = { invocation: Invocation; session: Session; run: Run; outputFolder: string };

/**
 * Finishes a run after its last request: pauses or finalizes it, verifies the tally, writes the report, prints the summary and returns the exit code.
 * `left`: the run when its command stopped deleting it, null if a signal came first. An ended run stays the run of its list until its report is
 * written, so repeating the command completes an interrupted finish.
 */
export async function finishRun(work: Finish, interrupts: Interrupts, left: Run | null): Promise<number> {
  const { session, invocation } = work;
  const run = await leaveRun(work, interrupts, left);
  if (run === null) return interrupts.exit() ?? exitCodes.UNREACHABLE.exit;
  const reported = await report(work, run, interrupts);
  if (reported === null) return interrupts.exit() ?? exitCodes.UNREACHABLE.exit;
  const { files, problem } = reported;
  if (files !== null && run.rehearsalOf === '') await deliver(work, run).catch(() => {}); // best effort: the report is already written
  if (isFinalized(run.state)) await removeOwnQueue(session, run); // also removes the queue that a killed command or an outage of Redis left behind
  const exit = problem === null ? exitCodeOf(run, interrupts, left) : exitCodes.INTERNAL.exit;
  const { stderr, stdout, options, verbosity } = invocation;
  const measures = await readMeasures(session.redis, run.id).catch(() => nothingMeasured);
  const pace = paceSummary(measures, sumActiveMs(run, Date.now()));
  const examples = await haltExamples(session.redis, run).catch(() => []); // best effort, like the report
  const proof = await readProof(session.redis, run).catch(() => []);
  const details = { typed: invocation, files, pace: paceLines(pace), examples, proof };
  const isQuiet = verbosity === 'quiet';
  stderr.write(`${isQuiet ? '' : '\n'}${endingText(endingOf(run, kindOf(run), details), styleOf(stderr), isQuiet)}\n`);
  if (problem !== null) stderr.write(`error: ${problem}\n`);
  jsonLines(stdout, options.json)('pace', { ...rehearsalFacts(run), run: run.id, ...paceFacts(pace) });
  if (options.json) {
    const { standing, ...summary } = standingSummary(run, null, { toType: invocation.toType, exit });
    const held = standing !== null && run.rehearsalOf !== '' ? { ...standing, next: null } : standing; // it cannot be resumed
    stdout.write(`${JSON.stringify({ ...summary, standing: held, examples })}\n`);
  }
  return exit;
}

/** Finishes a run that ended while its command could not finish it. Nothing is sent, so it needs neither a token nor a confirmation. */
export async function finishEnded(work: Finish): Promise<number> {
  const { id, state, retryOf } = work.run;
  const next = retryOf === '' ? '\n  After that the same command makes a new run of the list.' : '';
  const { invocation } = work;
  infoWriter(invocation)(
    `Run ${id} of this list is ${state}, but its report was not written. It is written now; nothing is sent.${next}`,
  );
  const interrupts = listenForInterrupts(invocation, () => {});
  try {
    return await finishRun(work, interrupts, work.run);
  } finally {
    interrupts.dispose();
  }
}

/** Files and measurements for the summary, if any. `examples`: ids that show why the run halted. */
type EndingDetails = {
  typed: Pick<Invocation, 'program' | 'argv' | 'toType' | 'config' | 'env'>;
  files?: RunFiles | null;
  pace?: readonly string[];
  examples?: readonly HaltExample[];
  proof?: readonly string[];
};

/** The facts of the final summary of a command. */
function endingOf(run: Run, kind: EndingKind, details: EndingDetails): Ending {
  const { typed, files = null, pace = [], examples = [], proof = [] } = details;
  const { id, reason, who, halt, doubt, retryOf, rehearsalOf, rows, ids, counts, protectedRead, attempts } = run;
  const { bodies, definitions } = run;
  const written = files === null ? [] : [files.outcomes, files.failures].filter((file) => file !== null);
  return {
    kind,
    runId: id,
    reason,
    who,
    halt,
    doubt,
    retryOf,
    rehearsalOf,
    isPlanned: run.plan !== '',
    brakes: rehearsalOf === '' ? [] : brakeTexts(run),
    rows,
    ids,
    isNoneThere: judgeRun(run) === 'none_there',
    pending: countPending(run),
    counts,
    protectedRead,
    attempts,
    bodies,
    definitions,
    proof,
    activeMs: sumActiveMs(run, Date.now()),
    pace,
    failures: files?.groups ?? [],
    examples,
    behindHalt: haltSelection(run),
    files: written.map((file) => file.path),
    command: commandLine(typed.program, typed.argv),
    ignoredProxy: ignoredProxyVariable(typed.config, run, typed.env),
    toType: typed.toType,
  };
}

/** Reports that a run is left to the workers, with its warnings. Returns the exit code. */
export function sayDetached(
  invocation: Invocation,
  run: Run,
  context: RunContext,
  warnings: readonly Advice[],
): number {
  const { options, toType, stdout, stderr, verbosity } = invocation;
  stderr.write(
    `${endingText(endingOf(run, 'detached', { typed: invocation }), styleOf(stderr), verbosity === 'quiet')}\n`,
  );
  writeWarnings(stderr, warnings, toType);
  if (options.json) stdout.write(`${JSON.stringify(standingSummary(run, context, { toType }))}\n`);
  return 0;
}

async function deliver({ session: { redis }, outputFolder }: Finish, run: Run): Promise<void> {
  await markDelivered(redis, run, resolve(outputFolder));
  const delivered = await readRun(redis, run.id);
  if (delivered !== null && delivered.keepMs < handOverMs) await expireRun(redis, delivered);
}

/** Whether Redis would answer a repeated command with the same error. */
function isPermanentError(error: unknown): boolean {
  return /^(ERR|WRONGTYPE)\b/.test(messageOf(error));
}

/**
 * The exit code of a run. A finalized run has ended even if a signal has come in the meantime: there is nothing to resume. A run that was resumed
 * since counts as `left`.
 */
function exitCodeOf(run: Run, interrupts: Interrupts, left: Run | null): number {
  return toExitCode(run) ?? interrupts.exit() ?? (left && toExitCode(left)) ?? exitCodes.INTERNAL.exit;
}

/**
 * Pauses the run if no process would delete it any more, tallies it if it is finalized, and returns it. Returns null if Redis is unreachable or has
 * lost the run. If Redis does not say whether another command deletes the run, that command undoes the pause.
 */
async function leaveRun(work: Finish, interrupts: Interrupts, left: Run | null): Promise<Run | null> {
  const { session, run, invocation } = work;
  return retryWhileRedisFails(work, interrupts, async () => {
    const seen = await readRun(session.redis, run.id); // fails at once if Redis is unreachable, while a command of the queue would wait
    const why = seen === null ? null : whyPaused(seen, interrupts, left);
    if (why !== null && (await hasOtherForegroundCommand(session, run)) !== true) await pause(work, why);
    const now = await readRun(session.redis, run.id);
    if (now === null) invocation.stderr.write(`Run ${run.id} has ended without a report. ${gone}\n`);
    return now === null ? null : await tallyIfFinalized(session.redis, now);
  });
}

const tryAgainMs = 500;

/** Repeats a task, which must be safe to repeat, while Redis is unreachable or rejects writes. After a signal it reports why and returns null. */
async function retryWhileRedisFails<T>(
  { invocation: { stderr } }: Finish,
  { signal }: Interrupts,
  task: () => Promise<T>,
): Promise<T | null> {
  for (let n = 1; ; n++) {
    try {
      return await task();
    } catch (error) {
      const words = describeRejection(error);
      if (!isRedisError(error) || (words === '' && isPermanentError(error))) throw error;
      const [problem, recovery] =
        words === '' ? ['does not answer', 'is back'] : [`rejects writes: ${words}`, 'accepts them again'];
      if (signal.aborted) {
        stderr.write(
          `Redis ${problem}. What was sent is recorded there; the same command resumes once it ${recovery}.\n`,
        );
        return null;
      }
      if (n === 1) stderr.write(`Redis ${problem}. The run continues here once it ${recovery}.\n`);
      await sleepUntilAborted(tryAgainMs, signal);
    }
  }
}

const gone = `${lostReason}.
  Restore its data and run the same command to resume, or start over: the same command with --expect-absent.`;

/** Why a command pauses a run that it leaves; null = it does not pause the run. */
function whyPaused({ state }: Run, interrupts: Interrupts, left: Run | null): string | null {
  const exit = interrupts.exit();
  if (isFinalized(state)) return null;
  if (exit !== null) return `interrupted by ${exit === exitCodes.INTERRUPTED.exit ? 'SIGINT' : 'SIGTERM'}`;
  if (state !== 'running' || left === null) return null;
  return `it was resumed while its command was ending, because it was ${left.state}: ${left.reason}`;
}

async function pause({ session: { ledger }, invocation, run }: Finish, reason: string): Promise<void> {
  await ledger.steer(run.id, Date.now(), { action: 'pause', reason, by: 'interrupt', who: whoAmI(invocation.env) });
}

type Reported = { files: RunFiles | null; problem: string | null };

/** Verifies the tally and writes the report. Both can be repeated, so an error is returned and the run is kept. Returns null after a signal. */
async function report(work: Finish, run: Run, interrupts: Interrupts): Promise<Reported | null> {
  const { session, invocation, outputFolder } = work;
  if (!isFinalized(run.state) && run.rehearsalOf === '') return { files: null, problem: null };
  const progress = startProgress(
    progressStream(invocation),
    invocation.env,
    () => 'Checking the ledger and writing the report',
  );
  try {
    return await retryWhileRedisFails(work, interrupts, async () => {
      const mismatch = checkConservation(run, await tallyLedger(session.redis, run));
      const files = await writeRunFiles(session.redis, run, outputFolder);
      return { files, problem: mismatch };
    });
  } catch (error) {
    if (!(error instanceof ExpungeError)) throw error;
    return {
      files: null,
      problem: [error.message, error.advice && adviceText(error.advice, invocation.toType)]
        .filter(Boolean)
        .join('\n  '),
    };
  } finally {
    progress.stop();
  }
}

function kindOf({ state, by }: Run): EndingKind {
  if (state === 'completed' || state === 'cancelled' || state === 'halted' || state === 'cancelling') return state;
  if (state === 'paused' && by === 'operator') return 'paused';
  return state === 'running' ? 'left' : 'interrupted';
}
