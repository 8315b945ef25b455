import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, type JobsOptions, Queue, type Worker, type WorkerOptions } from 'bullmq';
import type { Log } from '../logger.ts';
import { waitUntil } from '../redis/await-redis.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { describeRedisError } from '../redis/errors.ts';
import { keys } from '../redis/keys.ts';

/** The unit of the queue. Never ids or secrets: jobs are stored in clear text and shown in dashboards. */
export type ChunkJob = { run: string; chunk: number };

/** Which queue: all detached runs of a target share one; `run` has one of its own that only it consumes. */
export type QueueAddress = { fp: string; name: string; connection: QueueConnection };

/** The queue that a target's workers consume. */
export const sharedQueueName = 'chunks';

/** The queue of one `run` command. */
export function ownQueueName(run: string): string {
  return `run-${run}`;
}

/** The queue of the notifications for a source's schedules. */
export function notifierQueueName(source: string): string {
  return `notifications-${source}`;
}

/** Neither an integer nor with a colon: BullMQ refuses both. */
function jobId({ run, chunk }: ChunkJob): string {
  return `r${run}-c${chunk}`;
}

/** BullMQ only notifies; the ledger is the source of truth. A finished job leaves nothing behind, whatever its result. */
const jobOptions: JobsOptions = { removeOnComplete: true, removeOnFail: true, stackTraceLimit: 0, keepLogs: 0 };

/** Every option of the workers we rely on. A dead worker's chunk is taken over after lock + 1 to 2 checks. */
export const workerOptions: Omit<WorkerOptions, 'connection' | 'prefix'> & { lockDuration: number } = {
  lockDuration: 10_000,
  stalledInterval: 2_000, // often two of them pass between checks: a check keeps others off for as long
  maxStalledCount: 1_000, // two lost replies in a row must never fail a job that nobody ran
  drainDelay: 2, // seconds a worker waits for the next job in one call
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
};

/** Jobs of a queue by where they are. A paused queue keeps them waiting. */
export type QueueDepth = Record<(typeof depths)[number], number>;

const leavingMs = 250; // for so long Redis may list a worker that has just gone
const depths = ['waiting', 'active', 'delayed'] as const;

/** The producer's side of a queue. It connects with its first use. */
export type ChunkQueue = {
  open(): void;
  /** Adds the jobs of chunks; a job that is there already stays as it is. */
  add(jobs: ChunkJob[]): Promise<void>;
  /** Adds them again where the queue has lost them or thinks they are over. */
  restore(jobs: ChunkJob[]): Promise<void>;
  /** How many workers listen, or null if Redis doesn't tell. */
  workers(): Promise<number | null>;
  /** Throws before the first use. */
  depth(): Promise<QueueDepth>;
  /** Removes the queue and everything in it, unless a worker is known to listen. */
  remove(): Promise<void>;
  close(): Promise<void>;
};

export function openQueue(address: QueueAddress): ChunkQueue {
  const queue = lazily(() => connect(address));
  const workers = () => countListeners(queue());
  return {
    open: () => void queue(),
    add: async (jobs) => {
      if (jobs.length > 0)
        await queue().addBulk(jobs.map((data) => ({ name: 'chunk', data, opts: { jobId: jobId(data) } })));
    },
    restore: (jobs) => restore(queue(), jobs),
    workers,
    depth: async () => {
      if (queue.made === null) throw new Error('the queue was not opened');
      return (await queue.made.getJobCounts(...depths)) as QueueDepth;
    },
    remove: async () => {
      const isLeft = await waitUntil(async () => !(await workers()), leavingMs);
      if (isLeft) await queue().obliterate({ force: true });
    },
    close: async () => queue.made?.close(),
  };
}

function connect({ fp, name, connection }: QueueAddress): Queue {
  const queue = new Queue(name, {
    connection: connection as ConnectionOptions,
    prefix: keys.queuePrefix(fp),
    defaultJobOptions: jobOptions,
    streams: { events: { maxLen: 1_000 } },
  });
  queue.on('error', () => {}); // whoever waits for an answer gets the error; without a listener it would reach the console
  return queue;
}

/** How many processes consume a queue, without making it: `now`, or those that stay for longer than Redis lists one that has just gone. */
export async function countConsumers(
  { fp, name, connection }: QueueAddress,
  which: 'now' | 'those that stay' = 'now',
): Promise<number | null> {
  const options = { connection: connection as ConnectionOptions, prefix: keys.queuePrefix(fp), skipMetasUpdate: true };
  const queue = new Queue(name, options);
  queue.on('error', () => {});
  try {
    if (which === 'those that stay') await waitUntil(async () => !(await countListeners(queue)), leavingMs);
    return await countListeners(queue);
  } finally {
    await queue.close();
  }
}

/** Reads CLIENT LIST: null where the login may not, or Redis is away. */
export function countListeners(queue: Queue): Promise<number | null> {
  return queue.getWorkersCount().catch(() => null);
}

async function restore(queue: Queue, jobs: ChunkJob[]): Promise<void> {
  for (const data of jobs) {
    const state = await queue.getJobState(jobId(data));
    if (state === 'completed' || state === 'failed' || state === 'unknown') {
      await queue.remove(jobId(data));
      await queue.add('chunk', data, { jobId: jobId(data) });
    }
  }
}

/** Something that is made when it is first asked for: whatever belongs to BullMQ connects as soon as there is one. */
export type Lazy<T> = { (): T; readonly made: T | null };

export function lazily<T>(make: () => T): Lazy<T> {
  let made: T | null = null;
  const get = () => {
    made ??= make();
    return made;
  };
  return Object.defineProperty(get, 'made', { get: () => made }) as Lazy<T>;
}

const repeatAfterMs = 60_000;
const maxReasons = 20;

/** Logs errors, the same text once a minute: while Redis fails there may be thousands a second. */
export function errorLogger(log: Log, message: string, clock: () => number): (error: unknown) => void {
  const loggedAt = new Map<string, number>();
  return (error) => {
    const reason = describeRedisError(error);
    const now = clock();
    if (now - (loggedAt.get(reason) ?? Number.NEGATIVE_INFINITY) < repeatAfterMs) return;
    if (loggedAt.size >= maxReasons) loggedAt.clear();
    loggedAt.set(reason, now);
    log.warn({ reason }, message);
  };
}

const errorBackoffMs = 500;

/**
 * Pauses the loop of a BullMQ worker for half a second after an error. By itself it pauses only where the connection is lost, and asks
 * a Redis that rejects writes thousands of times a second.
 */
export function backOffOnErrors(worker: Pick<Worker, 'on' | 'pause' | 'resume' | 'closing'>): void {
  let isResting = false;
  worker.on('error', async () => {
    if (isResting) return;
    isResting = true;
    await worker.pause(true).catch(() => {});
    await sleep(errorBackoffMs);
    isResting = false;
    if (!worker.closing) await worker.resume(); // tells of errors by itself
  });
}
