import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, type Job, Worker } from 'bullmq';
import { messageOf } from '../errors.ts';
import type { Log } from '../logger.ts';
import { keys } from '../redis/keys.ts';
import { type ChunkJob, errorLogger, lazily, type QueueAddress, workerOptions } from './queue.ts';
import { withTimeout } from './with-timeout.ts';

/**
 * How a job ended here: its chunk was worked on; that, and some of it is due again in so many ms; or it goes back to the queue.
 */
type JobResult = 'done' | { dueInMs: number } | 'requeue';

/** Does one pass over one chunk. `stop` is aborted when this process has lost the job or shuts down. */
export type ChunkHandler = (job: ChunkJob, stop: AbortSignal) => Promise<JobResult>;

export type ConsumerOptions = {
  address: QueueAddress;
  /** Whether another job is wanted. Asked every few ms; one is only taken when it says yes. */
  canTakeMore(): boolean;
  handle: ChunkHandler;
  /** Called once the job of a chunk has been put away, so that another can be made for it: the chunk is due, or nobody worked on it. */
  isDue(run: string): void;
  requeue(job: ChunkJob): void;
  log: Log;
};

/** Connects when it starts. */
export type Consumer = {
  start(): void;
  /** Takes no more jobs, stops those in hand, and returns when they have ended; bounded by the handler, not by Redis. */
  drain(): Promise<void>;
};

/** What a consumer needs of BullMQ, and of time. */
type Source = {
  connect(address: QueueAddress, log: Log): Pick<Worker<ChunkJob>, 'getNextJob' | 'startStalledCheckTimer' | 'close'>;
  sleep(ms: number): Promise<unknown>;
};

/** Jobs in hand at once. */
export const maxJobs = 16;
const pollEveryMs = 2;
const errorBackoffMs = 500;
const finishMs = 500;

/**
 * Takes jobs of a queue one by one, when this process can work on another chunk: what it can't work on is left to others, and chunks
 * that wait for stragglers don't keep it from taking more. So BullMQ's own loop, which keeps a fixed number in hand, stays unused;
 * locks are renewed here. Our values become BullMQ's in this folder only.
 */
export function openConsumer(
  { address, canTakeMore, handle, isDue, requeue, log }: ConsumerOptions,
  { connect, sleep }: Source = bullmq,
): Consumer {
  const worker = lazily(() => connect(address, log));
  const stopping = new AbortController();
  const inHand = new Set<Promise<unknown>>();
  const take = async () => {
    const token = randomUUID();
    const job: Job<ChunkJob> | undefined = await worker().getNextJob(token);
    if (job === undefined) return;
    const work = workOn(job, token, handle, stopping.signal, log)
      .then((end) => {
        if (end === 'requeue') requeue(job.data);
        else if (end !== 'done') setTimeout(() => stopping.signal.aborted || isDue(job.data.run), end.dueInMs).unref();
      })
      .finally(() => inHand.delete(work));
    inHand.add(work);
  };
  const loop = async () => {
    while (!stopping.signal.aborted) {
      if (inHand.size < maxJobs && canTakeMore()) await take().catch(() => sleep(errorBackoffMs));
      else await sleep(pollEveryMs);
    }
  };
  return {
    start: () => {
      worker()
        .startStalledCheckTimer()
        .catch(() => {}); // tells of errors by itself
      void loop();
    },
    drain: async () => {
      stopping.abort();
      await Promise.allSettled(inHand);
      // Forced, and as the first close: it returns at once whatever state Redis is in. Chunks were handed back before.
      await worker.made?.close(true).catch(() => {});
    },
  };
}

const bullmq: Source = { connect: connectWorker, sleep };

function connectWorker({ fp, name, connection }: QueueAddress, log: Log): Worker<ChunkJob> {
  const prefix = keys.queuePrefix(fp);
  const worker = new Worker<ChunkJob>(name, null, {
    ...workerOptions,
    connection: connection as ConnectionOptions,
    prefix,
  });
  worker.on(
    'error',
    errorLogger(log, 'the queue got an error from Redis', () => performance.now()),
  );
  return worker;
}

const { lockDuration } = workerOptions;

/** Handles a job under its lock, and puts it away. A lock that is lost stops the work: somebody else will take the chunk. */
async function workOn(
  job: Job<ChunkJob>,
  token: string,
  handle: ChunkHandler,
  stopping: AbortSignal,
  log: Log,
): Promise<JobResult> {
  const lost = new AbortController();
  const renewal = setInterval(() => {
    const renewed = job.extendLock(token, lockDuration).catch(() => 1); // Redis is away: nobody else can take it either
    void renewed.then((isOurs) => isOurs || lost.abort());
  }, lockDuration / 2);
  try {
    const end = await handle(job.data, AbortSignal.any([stopping, lost.signal]));
    await withTimeout(finishMs, job.moveToCompleted(null, token, false));
    return end;
  } catch (error) {
    log.debug({ reason: messageOf(error) }, 'a job was not removed; the ledger has the outcome of its chunk');
    return 'done';
  } finally {
    clearInterval(renewal);
  }
}
