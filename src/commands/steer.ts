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
    const now = await steer(session, run, action, { by, say: sayOf(invocation) });
    if (options.detach) {
      const { detach } = await import('./run-list.ts'); // no other order needs what deletes
      return detach(invocation, session, now);
    }
    if (action !== 'resume') return sayOutcome(invocation, action, { run: now, ...untouched });
    const [{ target: stop }, isAbandonedNow, targets] = await Promise.all([
      readStops(session.redis, run.fp),
      isAbandoned(session, now),
      readTargetState(session.redis, run.fp),
    ]);
    return sayOutcome(invocation, action, { run: now, stop, isAbandoned: isAbandonedNow, targets });
  });
}

/** The list of a run was read before: only ids that nobody protects by now are left to workers. */
function leftToWorkers({ redis }: Session, run: Run): LeftToWorkers {
  return { isProtected: run.protectedRead !== null, ids: openIdsOf(redis, run) };
}

/** A run after an order, and what keeps it from going on. */
type Steered = { run: Run; stop: Stop | null; isAbandoned: boolean; targets: readonly TargetState[] };

/** What is of no interest of a run that is to send nothing. */
export const untouched = { stop: null, isAbandoned: false, targets: [] };

/** Says what was done, and what keeps a resumed run from going on. Returns the exit code. */
export function sayOutcome(
  { options, stderr, stdout, verbosity }: Invocation,
  action: Action,
  steered: Steered,
): number {
  const { run, stop, isAbandoned, targets } = steered;
  const [done, ...next] = outcomeLines(action, run, isAbandoned);
  stderr.write(`${[done, ...(verbosity === 'quiet' ? [] : next)].join('\n')}\n`);
  if (isAbandoned) stderr.write(`warning: ${abandoned} ${nextCommands(run)}\n`);
  if (stop !== null)
    stderr.write(
      `${plainLine(`warning: the run is still stopped. ${stopAdvice(stop, commandFor('start-all', run))}`)}\n`,
    );
  warnOfThrottle(stderr, run, targets);
  const shown = withStandstill(run, stop, { isAbandoned });
  if (options.json) stdout.write(`${JSON.stringify(summaryOf(shown, exitOf(run), Date.now()))}\n`);
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
): Promise<Run> {
  const order = { action: action === 'resume' ? 'start' : action, ...by, by: 'operator' } as const;
  const [before, after] = await session.ledger.steer(run.id, Date.now(), order);
  if (before === after && !goals[action].includes(after as RunState)) throw refused(run.id, action, after);
  if (action === 'resume' && run.detached) await feed(session, run);
  return action === 'cancel' ? cancelled(session, run.id, say) : readRunAgain(session.redis, run.id);
}

/** Queues the chunks of a run again that was paused. If this fails, a worker recovers them within seconds. */
async function feed({ ledger, queueConnection }: Session, { id, fp }: Run): Promise<void> {
  const queue = openQueue({ fp, name: sharedQueueName, connection: queueConnection });
  await createFeeder(ledger, queue)
    .recover(id)
    .finally(() => queue.close());
}

const goals: Record<Action, readonly RunState[]> = {
  pause: ['paused'],
  resume: ['running', 'completed'],
  cancel: ['cancelling', 'cancelled', 'completed'],
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

/** What was done, and then what to do next. A run may be something else by now, since others steer it, too. */
function outcomeLines(action: Action, run: Run, isAbandonedNow: boolean): string[] {
  const left = plural(pendingOf(run), 'rows');
  if (!goals[action].includes(run.state)) {
    const done = action === 'pause' ? 'paused' : 'resumed';
    return [
      `Run ${run.id} was ${done}, but is ${run.state} by now, ${left} left.`,
      `  Why: expunge status ${run.id} --audit`,
    ];
  }
  if (action === 'pause')
    return [`Paused run ${run.id}, ${left} left. No more requests are sent.`, `  Resume: expunge resume ${run.id}`];
  const report = `  What happened to each row: expunge report ${run.id}`;
  const fault = conclusionText(judgeRun(run), run.ids);
  if (run.state === 'completed') return [`Run ${run.id} has completed${fault && `, but ${fault}`}.`, report];
  if (action === 'cancel') return [`Run ${run.id} is cancelled.`, report];
  if (isAbandonedNow) return [`Resumed run ${run.id}, ${left} left.`];
  const who = run.detached ? 'its workers continue' : 'its command continues';
  return [`Resumed run ${run.id}, ${left} left; ${who}.`, `  Follow it: expunge status ${run.id} --watch`];
}
