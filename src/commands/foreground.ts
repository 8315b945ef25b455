import type { Run } from '../ledger/run.ts';
import { countConsumers, openQueue, ownQueueName, type QueueAddress } from '../queue/queue.ts';
import { withTimeout } from '../queue/with-timeout.ts';
import type { Session } from './session.ts';

const removeMs = 2_000;

/** Whether a command works on an attended run at this moment; null where Redis doesn't tell. */
export async function hasForegroundCommand(session: Session, run: Run): Promise<boolean | null> {
  const count = await countConsumers(ownQueueOf(session, run));
  return count === null ? null : count > 0;
}

/** The same for a run whose own consumer has just closed here: whether another command goes on with it. */
export async function hasOtherForegroundCommand(session: Session, run: Run): Promise<boolean> {
  return ((await countConsumers(ownQueueOf(session, run), 'those that stay')) ?? 0) > 0;
}

/** Whether a run that nobody but its command works on is `running` without it. */
export async function isAbandoned(session: Session, run: Run): Promise<boolean> {
  return !run.detached && run.state === 'running' && (await hasForegroundCommand(session, run)) === false;
}

/**
 * Removes what a killed command left of the queue of its run, unless a command is known to work on it. Repeating it is harmless. Never throws:
 * what stays is in nobody's way, and what follows is worth more.
 */
export async function removeOwnQueue(session: Session, run: Run): Promise<void> {
  const queue = openQueue(ownQueueOf(session, run));
  await withTimeout(removeMs, queue.remove()); // its commands wait for Redis without limit, and need a little memory there
  await withTimeout(removeMs, queue.close());
}

/** The queue that only the commands of a run consume. */
function ownQueueOf({ queueConnection }: Session, { id, fp }: Run): QueueAddress {
  return { fp, name: ownQueueName(id), connection: queueConnection };
}
