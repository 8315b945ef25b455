import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, type Job, Worker } from 'bullmq';
import { messageOf } from '../errors.ts';
import type { Log } from '../logger.ts';
import { type Pulse, steadyPulse } from '../pulse.ts';
import { near, type Spans } from '../redis/distance.ts';
import { keys } from '../redis/keys.ts';
import { withTimeout } from '../wait.ts';
import {
  type ChunkJob,
  type Connecting,
  errorBackoffMs,
  errorLogger,
  lazily,
  lockDuration,
  maxWaitForJobMs,
  stalledEveryMs,
  waitForJobMs,
  workerOptions,
} from './queue.ts';
import type { QueueAddress } from './queues.ts';

/** The end of a job: `done`; done, and its chunk is due again in `dueInMs`; or `requeue`: another process takes it, or this one later. */
type JobResult = 'done' | { dueInMs: number } | 'requeue';

/** Does one pass over the chunk of a job. `stop` is aborted when this process has lost the job or shuts down. */
export type ChunkHandler = (job: ChunkJob, stop: AbortSignal) => Promise<JobResult>;

export type ConsumerOptions = {
  address: QueueAddress;
  /** Whether this process can work on another chunk. Called before each job is taken, every 5 ms while idle. */
  canTakeMore(): boolean;
  handle: ChunkHandler;
  /** Called when a chunk of the run is due again, after its job has been removed. */
  onDue(run: string): void;
  /** Called when a job ended with `requeue`, after it has been removed. */
  requeue(job: ChunkJob): void;
  /** How far Redis is. */
  distance?: Spans;
  log: Log;
};

/** Takes jobs from a queue and handles them. It connects when it starts. States: idle → started → drained. */
export type Consumer = {
  start(pulse?: Pulse): void;
  /** Takes no more jobs, stops the running ones and waits until they have ended. The time for that depends on the handler, not on Redis. */
  drain(): Promise<void>;
};

type QueueWorker = Connecting &
  Pick<Worker<ChunkJob>, 'getNextJob'> & {
    /** For how long the next `getNextJob` waits for a job, in ms. */
    waitMs(ms: number): void;
    /** Makes the jobs of dead processes available again. */
    checkStalled(): Promise<void>;
  };

/** The parts of BullMQ, and of time, that a consumer needs. */
type Source = {
  connect(address: QueueAddress, onError: (error: unknown) => void): QueueWorker;
  sleep(ms: number): Promise<unknown>;
};

/** The number of jobs that a process runs at once. */
export const maxJobs = 16;
const pollEveryMs = 5;
const finishMs = 500;

/**
 * Takes jobs one at a time, while this process can work on another chunk; other jobs are left to other processes. BullMQ's own loop keeps a fixed
 * number of jobs, so it is not used, and locks are renewed here.
 */
export function openConsumer(
  { address, canTakeMore, handle, onDue, requeue, distance = near, log }: ConsumerOptions,
  { connect, sleep }: Source = bullmq,
): Consumer {
  const logError = errorLogger(log, 'the queue got an error from Redis', () => performance.now());
  const worker = lazily(() => connect(address, logError));
  const stopping = new AbortController();
  const running = new Set<Promise<unknown>>();
  const take = async (pulse: Pulse) => {
    const token = randomUUID();
    const ready = worker();
    await ready.waitUntilReady(); // from here on the worker stays, because a job needs the worker that took it
    ready.waitMs(Math.min(pulse.everyMs(waitForJobMs), maxWaitForJobMs));
    const job: Job<ChunkJob> | undefined = await ready.getNextJob(token);
    if (job === undefined) return;
    pulse.wake();
    const work = workOn(job, token, { handle, stopping: stopping.signal, distance, log })
      .then((end) => {
        if (end === 'requeue') requeue(job.data);
        else if (end !== 'done') setTimeout(() => stopping.signal.aborted || onDue(job.data.run), end.dueInMs).unref();
      })
      .finally(() => running.delete(work));
    running.add(work);
  };
  const loop = async (pulse: Pulse) => {
    while (!stopping.signal.aborted) {
      if (running.size < maxJobs && canTakeMore()) await take(pulse).catch(() => sleep(errorBackoffMs));
      else await sleep(pollEveryMs);
    }
  };
  const checkStalled = async (pulse: Pulse) => {
    while (!stopping.signal.aborted) {
      // While a process is idle, no run has a job that could stall.
      if (!pulse.isIdle) await worker().checkStalled().catch(logError);
      await pulse.sleep(stalledEveryMs, stopping.signal);
    }
  };
  return {
    start: (pulse = steadyPulse()) => {
      void checkStalled(pulse);
      void loop(pulse);
    },
    drain: async () => {
      stopping.abort();
      await Promise.allSettled(running);
      // A forced first close returns at once, whatever state Redis is in. The chunks were returned before.
      await worker.made?.close(true).catch(() => {});
    },
  };
}

const bullmq: Source = { connect: connectWorker, sleep };

function connectWorker({ fp, name, connection }: QueueAddress, onError: (error: unknown) => void): QueueWorker {
  const prefix = keys.queuePrefix(fp);
  const worker = new Worker<ChunkJob>(name, null, {
    ...workerOptions,
    connection: connection as ConnectionOptions,
    prefix,
  });
  worker.on('error', onError);
  const parts = worker as unknown as { moveStalledJobsToWait(): Promise<void> }; // its own timer would also run while the process is idle
  return Object.assign(worker, {
    waitMs: (ms: number) => {
      worker.opts.drainDelay = ms / 1_000;
    },
    checkStalled: () => parts.moveStalledJobsToWait(),
  });
}

/** Handles a job under its lock, then removes it. A lost lock stops the work, because another process takes the chunk. */
async function workOn(
  job: Job<ChunkJob>,
  token: string,
  { handle, stopping, distance, log }: { handle: ChunkHandler; stopping: AbortSignal; distance: Spans; log: Log },
): Promise<JobResult> {
  const lost = new AbortController();
  const renewal = setInterval(() => {
    const renewed = job.extendLock(token, lockDuration).catch(() => 1); // Redis is away, so no other process can take it either
    void renewed.then((isOurs) => isOurs || lost.abort());
  }, lockDuration / 2);
  try {
    const end = await handle(job.data, AbortSignal.any([stopping, lost.signal]));
    await withTimeout(finishMs + distance.answerMs, job.moveToCompleted(null, token, false));
    return end;
  } catch (error) {
    log.debug({ reason: messageOf(error) }, 'a job was not removed; the ledger has the outcome of its chunk');
    return 'done';
  } finally {
    clearInterval(renewal);
  }
}
