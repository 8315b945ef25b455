import { setTimeout as sleep } from 'node:timers/promises';
import { ExpungeError } from '../errors.ts';
import { count, plural } from '../format.ts';
import { noteRunAction } from '../ledger/audit.ts';
import { changeRules } from '../ledger/change-rules.ts';
import { conclusionText, judgeRun } from '../ledger/conclusion.ts';
import { type LeftToWorkers, openIdsOf, refuseUnprotected } from '../ledger/protection.ts';
import { isSealed, pendingOf, type Run, type RunState, readRunAgain } from '../ledger/run.ts';
import { givenRules, type RunRules } from '../ledger/run-rules.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { sealTally } from '../ledger/tally.ts';
import { readTargetState, type TargetState } from '../limiter/read-target.ts';
import { readStops, type Stop, stopAdvice } from '../limiter/stop.ts';
import { createFeeder } from '../queue/feeder.ts';
import { openQueue, sharedQueueName } from '../queue/queue.ts';
import { keys } from '../redis/keys.ts';
import { abandoned } from '../terminal/panel.ts';
import { commandFor } from '../terminal/stop-text.ts';
import { plainLine } from '../terminal/style.ts';
import { throttleLines } from '../terminal/target-events.ts';
import { type Invocation, reasonOf } from './command.ts';
import { hasForegroundCommand, isAbandoned, removeOwnQueue, withStandstill } from './liveness.ts';
import { askYes, findRun, type Session, sayOf, sayUnlessJson, whoAmI, withRedis } from './session.ts';

type Action = 'pause' | 'resume' | 'cancel';

/** pause, resume and cancel: from any machine, within a second. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, verb, env, options } = invocation;
  return withRedis(invocation, sayUnlessJson(invocation), async (session) => {
    const run = await findRun(session, args[0]);
    const action = verb as Action;
    if (action === 'cancel') await confirmCancel(invocation, run);
    const by = { who: whoAmI(env), reason: reasonOf(options) };
    if (action === 'resume') await changeBy(session, run, resumeRules(invocation), by);
    if (options.detach && !run.detached) await refuseUnprotected(session.redis, run.fp, leftToWorkers(session, run));
    if (options.detach) await releaseFromForeground(session, run, by);
    const done = await steer(session, run, action, { by, say: sayOf(invocation) });
    const { run: now } = done;
    if (options.detach) {
      const { detach } = await import('./run-list.ts'); // no other order needs what deletes
      return detach(invocation, session, now);
    }
    if (action !== 'resume') return sayOutcome(invocation, action, { ...done, ...untouched });
    const [{ target: stop }, isAbandonedNow, targets] = await Promise.all([
      readStops(session.redis, run.fp),
      isAbandoned(session, now),
      readTargetState(session.redis, run.fp),
    ]);
    return sayOutcome(invocation, action, { ...done, stop, isAbandoned: isAbandonedNow, targets });
  });
}

/** The list of a run was read before: only ids that nobody protects by now are left to workers. */
function leftToWorkers({ redis }: Session, run: Run): LeftToWorkers {
  return { isProtected: run.protectedRead !== null, ids: openIdsOf(redis, run) };
}

/** A run before and after an order. `isChanged`: whether the order changed anything. */
type Ordered = { before: Run; run: Run; isChanged: boolean };

/** The same, and what keeps the run from going on. */
type Steered = Ordered & { stop: Stop | null; isAbandoned: boolean; targets: readonly TargetState[] };

/** What is of no interest of a run that is to send nothing. */
export const untouched = { stop: null, isAbandoned: false, targets: [] };

/** Says what was done, and what keeps a resumed run from going on. Returns the exit code. */
export function sayOutcome(
  { options, stderr, stdout, verbosity }: Invocation,
  action: Action,
  steered: Steered,
): number {
  const { run, isChanged, stop, isAbandoned, targets } = steered;
  const [done, ...next] = outcomeLines(action, steered);
  stderr.write(`${[done, ...(verbosity === 'quiet' ? [] : next)].join('\n')}\n`);
  if (isAbandoned) stderr.write(`warning: ${abandoned} ${nextCommands(run)}\n`);
  if (stop !== null)
    stderr.write(
      `${plainLine(`warning: the run is still stopped. ${stopAdvice(stop, commandFor('start-all', run))}`)}\n`,
    );
  warnOfThrottle(stderr, run, targets);
  const shown = withStandstill(run, stop, { isAbandoned });
  const facts = { ...summaryOf(shown, exitOf(run), Date.now()), changed: isChanged };
  if (options.json) stdout.write(`${JSON.stringify(facts)}\n`);
  return 0;
}

type By = { who: string; reason: string };

/** What `resume` says about rules. */
function resumeRules({ config, options }: Invocation): Partial<RunRules> {
  const { expectAbsent, onStatus } = config; // ids that have an outcome keep it; each chunk reads the setting when it is claimed
  return givenRules({
    config: { expectAbsent, onStatus, maxDeletes: options.maxDeletes as number | null | undefined },
  });
}

/**
 * Gives a resumed run other rules; an ended one keeps its own, as its exit code depends on them. Throws USAGE where it has sent all that it may
 * and the new number is no higher: it would halt at once.
 */
async function changeBy({ redis }: Session, run: Run, rules: Partial<RunRules>, by: By): Promise<void> {
  const spent = run.state === 'halted' && run.halt === 'max_deletes' ? (run.maxDeletes ?? 0) : 0;
  const { maxDeletes = spent } = rules;
  if (spent > 0 && maxDeletes !== null && maxDeletes <= spent)
    throw new ExpungeError('USAGE', `run ${run.id} has sent the ${count(spent)} ids that --max-deletes allows`, {
      next: `let it send more: expunge resume ${run.id} --max-deletes N`,
    });
  await changeRules(redis, run, rules, { at: Date.now(), by: 'operator', ...by });
}

/** Detaches a foreground run whose command has ended. Throws USAGE while a command is deleting it, and if it has ended. Repeating it is harmless. */
async function releaseFromForeground(session: Session, run: Run, by: By): Promise<void> {
  if (isSealed(run.state) || run.state === 'cancelling') throw refused(run.id, 'resume', run.state);
  if (run.state === 'preparing') {
    throw new ExpungeError('USAGE', `run ${run.id} can't be detached: its list was not written completely`, {
      next: `run its command again: ${run.command}`,
    });
  }
  if (run.detached) return;
  if ((await hasForegroundCommand(session, run)) === true) {
    throw new ExpungeError('USAGE', `run ${run.id} can't be detached: a command is deleting it`, {
      next: `stop that command with Ctrl-C first, then: expunge resume ${run.id} --detach`,
    });
  }
  await session.redis.hset(keys.run(run.id), 'detached', 1);
  await removeOwnQueue(session, run);
  const noted = { at: Date.now(), action: 'detach', ...by, by: 'operator' } as const;
  await noteRunAction(session.redis, run.id, noted);
}

function nextCommands({ id, command }: Run): string {
  return `Resume: ${command}\n  or detach it: expunge resume ${id} --detach`;
}

/** Warns about a wait that the server asked for: it outlasts a pause, and `target release` ends it. */
function warnOfThrottle(stderr: NodeJS.WriteStream, run: Run, targets: readonly TargetState[]): void {
  const held = throttleLines(targets, Date.now());
  if (held.length === 0) return;
  stderr.write(`warning: ${held.join('; ')}.\n  Release it: ${commandFor('target release', run)}\n`);
}

/** Throws USAGE without a confirmation. */
export async function confirmCancel(invocation: Invocation, run: Run): Promise<void> {
  if (isSealed(run.state)) return;
  await askYes(invocation, `Cancel run ${run.id} for good, with ${plural(pendingOf(run), 'ids')} left?`);
}

async function steer(
  session: Session,
  run: Run,
  action: Action,
  { by, say }: { by: By; say: (line: string) => void },
): Promise<Ordered> {
  const order = { action: action === 'resume' ? 'start' : action, ...by, by: 'operator' } as const;
  const { after, isChanged } = await session.ledger.order(run.id, Date.now(), order);
  if (!isChanged && !goals[action].includes(after as RunState)) throw refused(run.id, action, after);
  if (action === 'resume' && run.detached) await feed(session, run);
  const isEnding = action === 'cancel' && after !== 'preparing';
  const now = isEnding ? await cancelled(session, run.id, say) : await readRunAgain(session.redis, run.id);
  return { before: run, run: now, isChanged };
}

/** Queues the chunks of a run again that was paused. If this fails, a worker recovers them within seconds. */
async function feed({ ledger, queueConnection }: Session, { id, fp }: Run): Promise<void> {
  const queue = openQueue({ fp, name: sharedQueueName, connection: queueConnection });
  await createFeeder(ledger, queue)
    .recover(id)
    .finally(() => queue.close());
}

/** The states in which there is nothing left to do for an order. A pause is kept also for a halted run, and for one that is being written. */
const goals: Record<Action, readonly RunState[]> = {
  pause: ['paused', 'halted', 'preparing'],
  resume: ['running', 'completed'],
  cancel: ['cancelling', 'cancelled', 'completed', 'preparing'],
};

function refused(run: string, action: Action, state: string): ExpungeError {
  return new ExpungeError('USAGE', `run ${run} is ${state}: there is nothing to ${action}`, {
    next: `see its status: expunge status ${run}`,
  });
}

export const waitsForAnswers =
  'No more requests are sent. Waiting for the answers to requests in flight, at most for their request timeout.';
const pollMs = 100;
const noticeAfterMs = 2_000;

/** Waits until every leased chunk is returned or its lease has expired: then the run is sealed. */
async function cancelled(session: Session, id: string, say: (line: string) => void): Promise<Run> {
  const sayAt = performance.now() + noticeAfterMs;
  for (let isSaid = false; (await session.ledger.reclaim(id)) === 'cancelling'; ) {
    if (!isSaid && performance.now() > sayAt) {
      say(waitsForAnswers);
      isSaid = true;
    }
    await sleep(pollMs);
  }
  const run = await sealTally(session.redis, await readRunAgain(session.redis, id));
  await removeOwnQueue(session, run);
  return run;
}

/** What was done, and then what to do next. */
function outcomeLines(action: Action, { before, run, isChanged, isAbandoned }: Steered): string[] {
  if (run.state === 'preparing') return preparingLines(action, run);
  const left = plural(pendingOf(run), 'rows');
  const isLeft = run.pauses.some(({ id }) => before.pauses.some((pause) => pause.id === id));
  if (isLeft && action === 'resume') {
    const why =
      run.state === 'halted' ? `stays halted, and is paused${byWhom(run.pauses[0]!)}` : `stays paused${byWhom(run)}`;
    return [`Run ${run.id} ${why}.`, `  Lift that pause as well: expunge resume ${run.id}`];
  }
  if (!goals[action].includes(run.state)) return overtakenLines(action, run, left);
  if (action === 'pause') return pausedLines(before, run, isChanged, left);
  const report = `  What happened to each row: expunge report ${run.id}`;
  const fault = conclusionText(judgeRun(run), run.ids);
  if (run.state === 'completed') return [`Run ${run.id} has completed${fault && `, but ${fault}`}.`, report];
  if (action === 'cancel') {
    const isAlready = before.state === 'cancelled';
    return [isAlready ? `Run ${run.id} was cancelled already.` : `Run ${run.id} is cancelled.`, report];
  }
  const done = isChanged ? `Resumed run ${run.id}` : `Run ${run.id} was running already`;
  if (isAbandoned) return [`${done}, ${left} left.`];
  const who = run.detached ? 'its workers continue' : 'its command continues';
  return [`${done}, ${left} left; ${who}.`, `  Follow it: expunge status ${run.id} --watch`];
}

/** Others steer a run, too. */
function overtakenLines(action: Action, run: Run, left: string): string[] {
  const done = action === 'pause' ? 'paused' : 'resumed';
  return [
    `Run ${run.id} was ${done}, but is ${run.state} by now, ${left} left.`,
    `  Why: expunge status ${run.id} --audit`,
  ];
}

/** The run starts by itself once its list is written, so what was ordered takes effect there. */
function preparingLines(action: Action, { id }: Run): string[] {
  const is = `Run ${id} is still being written.`;
  if (action === 'cancel') return [`${is} It will be cancelled then; nothing of it is sent.`];
  if (action === 'resume') return [`${is} It starts by itself then.`];
  return [`${is} It will be paused then, and send nothing.`, `  Resume: expunge resume ${id}`];
}

function pausedLines(before: Run, run: Run, isChanged: boolean, left: string): string[] {
  const resume = `expunge resume ${run.id}`;
  const wasHalted = run.state === 'halted';
  if (before.state !== 'paused' && !wasHalted)
    return [`Paused run ${run.id}, ${left} left. No more requests are sent.`, `  Resume: ${resume}`];
  const was = `Run ${run.id} was ${wasHalted ? 'halted' : 'paused'} already${byWhom(before).replace(/^ by/, ', by')}.`;
  if (!isChanged) return [was, `  Resume: ${resume}`];
  if (before.by === 'operator' && !wasHalted)
    return [`${was} Your pause is kept beside that one; each is lifted by its own resume.`, `  Resume: ${resume}`];
  return [`${was} Your pause is kept: from now on only this resumes it: ${resume}`];
}

/** ` by ana: legal hold`. */
function byWhom({ who, reason }: { who: string; reason: string }): string {
  return plainLine(`${who ? ` by ${who}` : ''}${reason ? `: ${reason.replace(/\.$/, '')}` : ''}`);
}
