import { setTimeout as sleep } from 'node:timers/promises';
import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import { noteRunAction } from '../ledger/audit.ts';
import { changeRules } from '../ledger/change-rules.ts';
import { changedSince } from '../ledger/changed-since.ts';
import { runsOfTarget } from '../ledger/list-runs.ts';
import { readOpenIds, refuseUnprotected } from '../ledger/protection.ts';
import {
  type HaltCode,
  isFinalized,
  isHaltedFor,
  type Run,
  type RunState,
  readRun,
  readRunAgain,
} from '../ledger/run.ts';
import { isSameRule, type ResumeSettings, type RunRules, ruleNames } from '../ledger/run-rules.ts';
import { requireSameDefinitions } from '../ledger/same-definitions.ts';
import { finalizeTally } from '../ledger/tally.ts';
import type { Target } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import { createEnqueuer, registerWithWorkers, startDetachedRun } from '../queue/enqueuer.ts';
import { withQueue } from '../queue/on-demand.ts';
import type { ChunkQueue } from '../queue/queue.ts';
import { countConsumers, sharedQueueName } from '../queue/queues.ts';
import { keys } from '../redis/keys.ts';
import type { By, RunAction, SeenAction } from './action.ts';
import { detachedWarnings, hasForegroundCommand, removeOwnQueue, standingWarnings } from './liveness.ts';
import { readWholeContext } from './run-record.ts';
import { findRun, type Session } from './session.ts';
import { type RunContext, readRunContext } from './take-snapshot.ts';

type Action = 'pause' | 'resume' | 'cancel';

/** A run before and after an action. `isChanged`: whether the action changed anything. */
export type SteeredRun = { before: Run; run: Run; isChanged: boolean };

/** The rules that a resumed run obeys from now on; a missing rule stays as it is. `detach`: leave a run whose command has ended to workers. */
export type ResumeAction = SeenAction & {
  rules: Partial<Pick<RunRules, keyof ResumeSettings>>;
  detach: boolean;
};

/** The same, with what still holds the run back; `warnings` describe that in words. */
export type Resumed = SteeredRun & { context: RunContext; warnings: readonly Advice[] };

/** The runs of a target that are halted for this reason, newest first. Only reads. */
export async function findHaltedRuns({ redis }: Session, target: Target, halt: HaltCode): Promise<Run[]> {
  const found: Run[] = [];
  for await (const page of runsOfTarget(redis, target)) {
    const ids = page.filter((run) => isHaltedFor(run, halt)).map(({ id }) => id);
    found.push(...(await Promise.all(ids.map((id) => readRun(redis, id)))).filter((run) => run !== null));
  }
  return found;
}

export async function pauseRun(session: Session, { run: id, by }: RunAction): Promise<SteeredRun> {
  return steer(session, await findRun(session, id), 'pause', by);
}

export async function cancelRun(session: Session, { run: id, by }: RunAction, onWait: () => void): Promise<SteeredRun> {
  const steered = await steer(session, await findRun(session, id), 'cancel', by);
  if (steered.run.state === 'preparing') return steered;
  return { ...steered, run: await cancelled(session, id, onWait) };
}

export async function resumeRun(session: Session, action: ResumeAction): Promise<Resumed> {
  const { redis } = session;
  const { by, seen, rules, detach } = action;
  const found = await findRun(session, action.run);
  if (!hasEnded(found)) requireSameDefinitions(found.definitions, `run ${found.id}`);
  const changesNothing = found.state === 'running' && Object.keys(rules).length === 0;
  if (found.revision !== seen && !hasEnded(found) && !changesNothing) throw changedSince(found, null, 'resumed');
  const run = await changeBy(session, found, rules, by);
  if (run.revision !== found.revision + countRuleEdits(found, run) && !hasEnded(run))
    throw changedSince(run, found, 'resumed');
  if (detach) await requireDetachable(session, run);
  const steered = await steer(session, run, 'resume', by);
  if (detach) await releaseFromForeground(session, run, by);
  const now = detach ? await readRunAgain(redis, run.id) : steered.run;
  const context = await readWholeContext(session, now);
  const { target: stop } = context.stops;
  const warnings = detach
    ? detachedWarnings(now, await countWorkers(session, now), stop)
    : standingWarnings(now, context);
  return { ...steered, before: found, run: now, context, warnings };
}

/** What holds back a run that is left to workers, also in words. */
type LeftToWorkers = { context: RunContext; warnings: Advice[] };

/** Starts a run with the workers of its target, and returns what holds it back. Repeating it is harmless. Throws GUARD if the run has moved. */
export function leaveToWorkers(session: Session, run: Run, by: By): Promise<LeftToWorkers> {
  const { redis, ledger } = session;
  return withQueueOf(session, run, async (queue) => {
    const isStarted = await startDetachedRun(ledger, createEnqueuer(ledger, queue), run, by);
    if (!isStarted) throw changedSince(await readRunAgain(redis, run.id), run, 'resumed');
    const [workers, context] = await Promise.all([countWorkers(session, run), readRunContext(redis, run)]);
    return { context, warnings: detachedWarnings(run, workers, context.stops.target) };
  });
}

function withQueueOf<T>(
  { queueConnection }: Session,
  { fp }: Run,
  body: (queue: ChunkQueue) => Promise<T>,
): Promise<T> {
  return withQueue({ fp, name: sharedQueueName, connection: queueConnection }, body);
}

/** The open ids of a run as they are left to workers. Its list was read earlier, and ids may have been protected since. */
function leftToWorkers({ redis }: Session, run: Run) {
  return { isProtected: run.protectedRead !== null, ids: readOpenIds(redis, run) };
}

function hasEnded({ state }: Run): boolean {
  return isFinalized(state) || state === 'cancelling';
}

/**
 * Gives a resumed run other rules; an ended run keeps its own, because its exit code depends on them. Throws USAGE if it has sent all that it may and
 * the new number is not higher: it would halt at once.
 */
async function changeBy({ redis }: Session, run: Run, rules: Partial<RunRules>, by: By): Promise<Run> {
  const spent = run.state === 'halted' && run.halt === 'max_deletes' ? (run.maxDeletes ?? 0) : 0;
  const { maxDeletes = spent } = rules;
  if (spent > 0 && maxDeletes !== null && maxDeletes <= spent)
    throw new ExpungeError('USAGE', `run ${run.id} has sent the ${count(spent)} ids that --max-deletes allows`, {
      next: (toType) => `let it send more: ${toType('resume', run.id, '--max-deletes', 'N')}`,
    });
  return changeRules(redis, run, rules, { at: Date.now(), by: 'operator', ...by });
}

/** Number of edits in the revision of a run for its current rules: `--max-deletes` is written separately. */
function countRuleEdits(before: Run, run: Run): number {
  const changed = ruleNames.filter((name) => !isSameRule(name, before, run));
  return Number(changed.includes('maxDeletes')) + Number(changed.some((name) => name !== 'maxDeletes'));
}

/** Throws USAGE while a command is deleting the run, and if it has ended, and GUARD if the workers protect ids that its list did not. */
async function requireDetachable(session: Session, run: Run): Promise<void> {
  if (!run.detached) await refuseUnprotected(session.redis, run.fp, leftToWorkers(session, run));
  if (hasEnded(run)) throw refused(run.id, 'resume', run.state);
  if (run.state === 'preparing') {
    throw new ExpungeError('USAGE', `run ${run.id} can't be detached: its list was not written completely`, {
      next: `run its command again: ${run.command}`,
    });
  }
  if (!run.detached && (await hasForegroundCommand(session, run)) === true) {
    throw new ExpungeError('USAGE', `run ${run.id} can't be detached: a command is deleting it`, {
      next: (toType) => `stop that command with Ctrl-C first, then: ${toType('resume', run.id, '--detach')}`,
    });
  }
}

/** Leaves a run that has just been resumed to workers. Repeating it is harmless: if it breaks off, the run has no command, which `status` shows. */
async function releaseFromForeground(session: Session, run: Run, by: By): Promise<void> {
  const { redis, ledger } = session;
  if (run.detached) return registerWithWorkers(ledger, run); // its start has enqueued its chunks
  await redis.hset(keys.run(run.id), 'detached', 1);
  await removeOwnQueue(session, run);
  await noteRunAction(redis, run.id, { at: Date.now(), action: 'detach', ...by, by: 'operator' });
  await registerWithWorkers(ledger, run);
  await enqueueChunks(session, run);
}

/** Carries out the action. A run is resumed exactly as it was read, or not at all. */
async function steer(session: Session, run: Run, action: Action, by: By): Promise<SteeredRun> {
  const { redis, ledger } = session;
  const seen = action === 'resume' ? { seen: run.revision } : {};
  const steering = { action: action === 'resume' ? 'start' : action, ...by, by: 'operator', ...seen } as const;
  const { after, isChanged, isStale } = await ledger.steer(run.id, Date.now(), steering);
  if (isStale) throw changedSince(await readRunAgain(redis, run.id), run, 'resumed');
  if (!isChanged && !goals[action].includes(after as RunState)) throw refused(run.id, action, after);
  if (action === 'resume' && run.detached) await enqueueChunks(session, run);
  return { before: run, run: await readRunAgain(redis, run.id), isChanged };
}

/** Enqueues the chunks of a run that was paused again. If this fails, a worker recovers them within seconds. */
function enqueueChunks(session: Session, run: Run): Promise<void> {
  return withQueueOf(session, run, (queue) => createEnqueuer(session.ledger, queue).recover(run.id));
}

/** Number of workers of its target; null if Redis does not say. */
function countWorkers({ redis }: Session, { fp }: Run): Promise<number | null> {
  return countConsumers(redis, { fp, name: sharedQueueName });
}

/** The states in which an action has nothing left to do. A pause is also kept for a halted run, and for a run that is being written. */
export const goals: Record<Action, readonly RunState[]> = {
  pause: ['paused', 'halted', 'preparing'],
  resume: ['running', 'completed'],
  cancel: ['cancelling', 'cancelled', 'completed', 'preparing'],
};

function refused(run: string, action: Action, state: string): ExpungeError {
  return new ExpungeError('USAGE', `run ${run} is ${state}: there is nothing to ${action}`, {
    next: (toType) => `see its status: ${toType('status', run)}`,
  });
}

const pollMs = 100;
const noticeAfterMs = 2_000;

/** Waits until every leased chunk is returned or its lease has expired: then the run is finalized. */
async function cancelled(session: Session, id: string, onWait: () => void): Promise<Run> {
  const sayAt = performance.now() + noticeAfterMs;
  for (let isSaid = false; (await session.ledger.reclaim(id)) === 'cancelling'; ) {
    if (!isSaid && performance.now() > sayAt) {
      onWait();
      isSaid = true;
    }
    await sleep(pollMs);
  }
  const run = await finalizeTally(session.redis, await readRunAgain(session.redis, id));
  await removeOwnQueue(session, run);
  return run;
}
