import { dataServers, type RedisClient } from '../redis/client.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { keys } from '../redis/keys.ts';
import { waitUntil } from '../wait.ts';

// The names of the queues, and who consumes them. Without BullMQ, for commands that use no queue.

/** A queue of a target: its detached runs share one; each foreground `run` command has its own. */
export type QueueName = { fp: string; name: string };

/** A queue, and how BullMQ connects to it. */
export type QueueAddress = QueueName & { connection: QueueConnection };

/** The queue that a target's workers consume. */
export const sharedQueueName = 'chunks';

/** The queue of one foreground `run` command. */
export function ownQueueName(run: string): string {
  return `run-${run}`;
}

/** The run that owns the queue of this name; '' for the queue that the detached runs share. */
export function runOfQueue(name: string): string {
  return name === sharedQueueName ? '' : name.slice(ownQueueName('').length);
}

/** The number of processes that consume a queue; null if the login is not allowed to use CLIENT LIST, or Redis is away. */
export async function countConsumers(redis: RedisClient, { fp, name }: QueueName): Promise<number | null> {
  const client = `${keys.queuePrefix(fp)}:${Buffer.from(name).toString('base64')}`; // the name that BullMQ gives the connections of its workers
  const ofConsumer = (line: string) => {
    const given = / name=(\S*)/.exec(line)?.[1] ?? '';
    return given === client || given.startsWith(`${client}:w:`);
  };
  const counts = dataServers(redis).map(async (server) => {
    const list = (await server.client('LIST')) as string;
    return list.split('\n').filter(ofConsumer).length;
  });
  return Promise.all(counts).then(
    (found) => Math.max(0, ...found), // a worker is connected to several servers of a cluster
    () => null,
  );
}

const disconnectNoticeMs = 250; // how long Redis may still list a worker after it has disconnected

/**
 * Whether a process consumes a queue; null if Redis doesn't say. `now`: includes processes that Redis still lists after they have disconnected; `to
 * stay`: without them.
 */
export async function isConsumed(
  redis: RedisClient,
  queue: QueueName,
  which: 'now' | 'to stay' = 'now',
): Promise<boolean | null> {
  let consumers: number | null = null;
  await waitUntil(
    async () => {
      consumers = await countConsumers(redis, queue);
      return consumers === null || consumers === 0;
    },
    which === 'now' ? 0 : disconnectNoticeMs,
  );
  return consumers === null ? null : consumers > 0;
}
