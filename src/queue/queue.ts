import { type ConnectionOptions, type JobsOptions, Queue, type Worker, type WorkerOptions } from 'bullmq';
import { messageOf } from '../errors.ts';
import type { Log } from '../logger.ts';
import { describeRedisError } from '../redis/errors.ts';
import { keys } from '../redis/keys.ts';
import type { QueueAddress } from './queues.ts';

/** The unit of the queue. It never holds ids or secrets, because jobs are stored in clear text and shown in dashboards. */
export type ChunkJob = { run: string; chunk: number };

/** The id of a chunk's job. BullMQ rejects integers and colons. */
function jobId({ run, chunk }: ChunkJob): string {
  return `r${run}-c${chunk}`;
}

/** The ledger is the source of truth, so a finished job leaves nothing behind, whatever its result. */
const jobOptions: JobsOptions = { removeOnComplete: true, removeOnFail: true, stackTraceLimit: 0, keepLogs: 0 };

export const lockDuration = 10_000;
export const stalledEveryMs = 2_000;
/** The time a worker waits for the next job in one call. */
export const waitForJobMs = 2_000;
/** The longest such time: a call that takes much longer shows that Redis is away. */
export const maxWaitForJobMs = 10_000;

/** The worker options that we rely on. The chunk of a dead worker is taken over when its lock has expired and 1 to 2 checks have passed. */
export const workerOptions: Omit<WorkerOptions, 'connection' | 'prefix'> = {
  lockDuration,
  stalledInterval: stalledEveryMs, // checks are often 4 s apart, because each check blocks the checks of the other workers for 2 s
  maxStalledCount: 1_000, // lost replies must never fail a job that no worker ran
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
};

/** The producer's side of a queue. It connects with its first use. All methods throw if Redis does not answer, unless they say otherwise. */
export type ChunkQueue = {
  open(): void;
  /** Adds the jobs of chunks. A job that exists stays as it is, so repeating it adds nothing. */
  add(jobs: ChunkJob[]): Promise<void>;
  /** Adds the jobs again that the queue has lost or has recorded as finished. */
  restore(jobs: ChunkJob[]): Promise<void>;
  /** Removes the queue and everything in it. Call it only while no worker consumes the queue. */
  remove(): Promise<void>;
  close(): Promise<void>;
};

/** Opens the producer's side of the queue at this address. */
export function openQueue(address: QueueAddress): ChunkQueue {
  const queue = lazily(() => connect(address));
  return {
    open: () => void queue(),
    add: async (jobs) => {
      const [first] = jobs;
      // Usually a claim has opened one chunk. Then the transaction of a bulk would cost more than the job.
      if (jobs.length === 1) await addJob(queue(), first!);
      else if (jobs.length > 1)
        await queue().addBulk(jobs.map((data) => ({ name: 'chunk', data, opts: { jobId: jobId(data) } })));
    },
    restore: (jobs) => restore(queue(), jobs),
    remove: () => removeKeys(queue()),
    close: async () => queue.made?.close(),
  };
}

/**
 * Removes all keys of a queue. If another process removes them at the same moment, BullMQ finds that the queue is no longer paused: then it is gone.
 */
async function removeKeys(queue: Queue): Promise<void> {
  try {
    await queue.obliterate({ force: true });
  } catch (error) {
    if (!/non-paused/.test(messageOf(error))) throw error;
  }
}

function connect({ fp, name, connection }: QueueAddress): Queue {
  const queue = new Queue(name, {
    connection: connection as ConnectionOptions,
    prefix: keys.queuePrefix(fp),
    defaultJobOptions: jobOptions,
    streams: { events: { maxLen: 1_000 } },
  });
  queue.on('error', () => {}); // the caller gets the error; without a listener it would be written to the console
  return queue;
}

async function restore(queue: Queue, jobs: ChunkJob[]): Promise<void> {
  for (const data of jobs) {
    const state = await queue.getJobState(jobId(data));
    if (state === 'completed' || state === 'failed' || state === 'unknown') {
      await queue.remove(jobId(data));
      await addJob(queue, data);
    }
  }
}

function addJob(queue: Queue, data: ChunkJob): Promise<unknown> {
  return queue.add('chunk', data, { jobId: jobId(data) });
}

/** A BullMQ object, which connects when it is made. */
export type Connecting = Pick<Worker, 'closing'> & {
  waitUntilReady(): Promise<unknown>;
  close(force?: boolean): Promise<void>;
};

/** A BullMQ object that is made with its first use. `made`: the last object; null before the first. */
type Lazy<T> = { (): T; readonly made: T | null };

/**
 * Calls `make` at the first use, and again at the first use after an object failed to connect, because BullMQ tries its first commands once. A
 * cluster refuses them while the password of the login is replaced.
 */
export function lazily<T extends Connecting>(make: () => T): Lazy<T> {
  let made: T | null = null;
  let failed: T | null = null;
  const get = () => {
    if (made !== null && made !== failed) return made;
    const fresh = make();
    made = fresh;
    fresh.waitUntilReady().catch(() => {
      if (fresh.closing) return;
      failed = fresh;
      fresh.close(true).catch(() => {});
    });
    return fresh;
  };
  return Object.defineProperty(get, 'made', { get: () => made }) as Lazy<T>;
}

const repeatAfterMs = 60_000;
const maxReasons = 20;

/** Logs errors, each text at most once a minute, because there may be thousands per second while Redis fails. `clock`: monotonic ms. */
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

/** The pause after an error of Redis, in ms. */
export const errorBackoffMs = 500;
