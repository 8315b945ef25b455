import { isFinalized, type Run } from '../ledger/run.ts';
import { standingAdvice, standingText } from '../ledger/standing.ts';
import { type Stop, stopAdvice } from '../limiter/stop.ts';
import { commandFor, type Target } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import { withQueue } from '../queue/on-demand.ts';
import { isConsumed, ownQueueName, type QueueName } from '../queue/queues.ts';
import { withTimeout } from '../wait.ts';
import type { Session } from './session.ts';
import { type RunContext, standingsOfRun } from './take-snapshot.ts';

// This file finds out which processes delete a run, and why a run makes no progress.

const removeMs = 2_000;

/** Whether a command is currently deleting a foreground run; null if Redis does not say. */
export async function hasForegroundCommand(session: Session, run: Run): Promise<boolean | null> {
  return isConsumed(session.redis, ownQueueOf(run));
}

/** Whether another command is deleting a run whose consumer in this process has just closed; null if Redis does not say. */
export async function hasOtherForegroundCommand(session: Session, run: Run): Promise<boolean | null> {
  return isConsumed(session.redis, ownQueueOf(run), 'to stay');
}

/** Whether a foreground run is `running` although its command has ended. */
export async function isAbandoned(session: Session, run: Run): Promise<boolean> {
  return !run.detached && run.state === 'running' && (await hasForegroundCommand(session, run)) === false;
}

/**
 * Removes the queue that a killed command left of its run, unless a command is deleting that run, or may be. Repeating it is harmless. Never throws:
 * leftover keys are harmless, and the report that follows matters more.
 */
export async function removeOwnQueue(session: Session, run: Run): Promise<void> {
  const remove = async () => {
    const isUsed = await hasOtherForegroundCommand(session, run);
    if (isUsed ?? !isFinalized(run.state)) return;
    await withQueue({ ...ownQueueOf(run), connection: session.queueConnection }, (queue) => queue.remove());
  };
  await withTimeout(removeMs, remove()); // the queue waits for Redis without limit, and needs a little memory there
}

/** Warnings for a run that is left to workers: no worker of its target is alive (`workers` is null if Redis does not say), or the run is stopped. */
export function detachedWarnings(target: Named, workers: number | null, stop: Stop | null): Advice[] {
  const words =
    workers === null
      ? 'this Redis does not say whether a worker of this target is alive (CLIENT LIST); if none is,'
      : 'no worker of this target is alive;';
  const work: Advice = (toType) => `${words} start one: ${commandFor(toType, 'worker', target)}`;
  const start = (one: Stop): Advice => {
    return (toType) => `the run is stopped. ${stopAdvice(one, commandFor(toType, 'start-all', target))}`;
  };
  return [...(workers ? [] : [work]), ...(stop === null ? [] : [start(stop)])];
}

/** One warning for each cause that holds a run back, with how to end it. */
export function standingWarnings(run: Run, context: RunContext): Advice[] {
  return standingsOfRun(run, context).map((standing) => {
    const text = standingText(standing, Date.now());
    const words = `the run does not continue yet. ${text}.`;
    return (toType) => [words, standingAdvice(standing, toType)].filter(Boolean).join(' ');
  });
}

type Named = Pick<Target, 'baseUrl' | 'account'>;

/** The queue that only the commands of a run consume. */
function ownQueueOf({ id, fp }: Run): QueueName {
  return { fp, name: ownQueueName(id) };
}
