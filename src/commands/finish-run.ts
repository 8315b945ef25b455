import { ExpungeError, exitCodes } from '../errors.ts';
import { haltRules } from '../guard/thresholds.ts';
import { checkConservation } from '../ledger/conservation.ts';
import { haltExamples } from '../ledger/halt-examples.ts';
import { nothingMeasured, readMeasures } from '../ledger/measures.ts';
import { expireRun } from '../ledger/remove-run.ts';
import { activeMsOf, isSealed, type Run, readRun } from '../ledger/run.ts';
import { type RunFiles, writeRunFiles } from '../ledger/run-files.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { sealTally, tallyLedger } from '../ledger/tally.ts';
import { refusalWords } from '../redis/refusal-words.ts';
import { type EndingKind, endingText } from '../terminal/ending.ts';
import { paceFacts, paceLines, paceSummary } from '../terminal/pace-summary.ts';
import { startProgress } from '../terminal/progress.ts';
import { styleOf } from '../terminal/style.ts';
import { lostWords } from '../worker/stop-runs.ts';
import { isAttendedByOthers } from './attended.ts';
import type { DeleteHere } from './delete-here.ts';
import { endingOf } from './ending-of.ts';
import type { Interrupts } from './interrupts.ts';
import { jsonLines } from './json-lines.ts';
import { type Session, whoAmI } from './session.ts';

/** After the last request: leave the run in order, check that it adds up, write the report, say how it ended. */
export async function finishRun(work: DeleteHere, interrupts: Interrupts): Promise<number> {
  const { session, invocation } = work;
  const run = await leaveRun(work, interrupts);
  if (run === null) return interrupts.exit() ?? exitCodes.UNREACHABLE.exit;
  const { files, trouble } = await report(work, run);
  if (isSealed(run.state)) await expireRun(session.redis, run).catch(() => {}); // best effort: the report is written
  const exit = trouble === null ? exitCodeOf(run, interrupts) : exitCodes.INTERNAL.exit;
  const { stderr, stdout, options } = invocation;
  const measures = await readMeasures(session.redis, run.id).catch(() => nothingMeasured);
  const pace = paceSummary(measures, activeMsOf(run, Date.now()));
  const examples = await haltExamples(session.redis, run, haltRules).catch(() => []); // best effort, like the report
  const told = { files, pace: paceLines(pace), examples };
  stderr.write(`\n${endingText(endingOf(run, kindOf(run), told), styleOf(stderr))}\n`);
  if (trouble !== null) stderr.write(`error: ${trouble}\n`);
  jsonLines(stdout, options.json)('pace', { run: run.id, ...paceFacts(pace) });
  if (options.json) stdout.write(`${JSON.stringify(summaryOf(run, exit, Date.now()))}\n`);
  return exit;
}

/** A run that was sealed while a signal stopped it has ended all the same: there is nothing to resume. */
function exitCodeOf(run: Run, interrupts: Interrupts): number {
  const ended = isSealed(run.state) ? exitOf(run) : null;
  return ended ?? interrupts.exit() ?? exitOf(run) ?? exitCodes.INTERNAL.exit;
}

/**
 * The run as it is left: paused if a signal stopped it and no other command goes on with it, tallied if it was cancelled. Null if Redis
 * is away or has lost it.
 */
async function leaveRun({ session, run, invocation }: DeleteHere, interrupts: Interrupts): Promise<Run | null> {
  try {
    const isJoined = interrupts.exit() !== null && (await isAttendedByOthers(session, run));
    if (interrupts.exit() !== null && !isJoined) await pause(session, run.id, interrupts.exit()!);
    const now = await readRun(session.redis, run.id);
    if (now === null) invocation.stderr.write(`Run ${run.id} has ended without a report. ${gone}\n`);
    return now !== null && isSealed(now.state) ? await sealTally(session.redis, now) : now;
  } catch (error) {
    const words = refusalWords(error);
    const [trouble, then] =
      words === '' ? ['does not answer', 'is back'] : [`refuses writes: ${words}`, 'takes them again'];
    invocation.stderr.write(
      `Redis ${trouble}. What was sent is marked there; the same command resumes once it ${then}.\n`,
    );
    return null;
  }
}

const gone = `${lostWords}.
  Bring its data back and run the same command to go on, or begin anew: the same command with --expect-absent.`;

async function pause({ ledger }: Session, run: string, exit: number): Promise<void> {
  const reason = `interrupted by ${exit === exitCodes.INTERRUPTED.exit ? 'SIGINT' : 'SIGTERM'}`;
  await ledger.steer(run, Date.now(), { action: 'pause', reason, by: 'interrupt', who: whoAmI() });
}

type Reported = { files: RunFiles | null; trouble: string | null };

/** A report that can't be written takes nothing away from the run: it can be written again from Redis. */
async function report({ session, invocation, outputFolder }: DeleteHere, run: Run): Promise<Reported> {
  if (!isSealed(run.state)) return { files: null, trouble: null };
  const progress = startProgress(invocation.stderr, invocation.env, () => 'Checking the ledger and writing the report');
  try {
    const mismatch = checkConservation(run, await tallyLedger(session.redis, run));
    const files = await writeRunFiles(session.redis, run, outputFolder);
    return { files, trouble: mismatch };
  } catch (error) {
    if (!(error instanceof ExpungeError)) throw error;
    return { files: null, trouble: [error.message, error.next].filter(Boolean).join('\n  ') };
  } finally {
    progress.stop();
  }
}

function kindOf({ state }: Run): EndingKind {
  if (state === 'completed' || state === 'cancelled' || state === 'halted') return state;
  return state === 'running' ? 'left' : 'interrupted';
}
