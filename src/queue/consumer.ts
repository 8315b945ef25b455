import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, type Job, Worker } from 'bullmq';
import { messageOf } from '../errors.ts';
import type { Log } from '../logger.ts';
import { keys } from '../redis/keys.ts';
import { type ChunkJob, type QueueAddress, workerOptions } from './queue.ts';

/** Does one pass over one chunk. `stop` is aborted when this process has lost the job or shuts down. */
export type ChunkHandler = (job: ChunkJob, stop: AbortSignal) => Promise<void>;

export type Consumer = {
  start(): void;
  /** Takes no more jobs, stops those in hand, and returns when they have ended; bounded by the handler, not by Redis. */
  drain(): Promise<void>;
};

const brakeMs = 500;
const finishMs = 500;

/** Consumes the chunks of a queue, `concurrency` at a time. Our values become BullMQ's in this file only. */
export function openConsumer(address: QueueAddress, concurrency: number, handle: ChunkHandler, log: Log): Consumer {
  const inHand = new Set<Promise<void>>();
  const unfinished = new Set<string>(); // jobs in hand and those BullMQ has not put away yet
  // Three declared parameters: with fewer BullMQ passes no signal.
  const processor = async (job: Job<ChunkJob>, _token: string | undefined, signal: AbortSignal | undefined) => {
    unfinished.add(job.id!);
    const work = handle(job.data, signal ?? new AbortController().signal);
    inHand.add(work);
    await work.finally(() => inHand.delete(work));
  };
  const worker = new Worker<ChunkJob>(address.name, processor, {
    ...workerOptions,
    connection: address.connection as ConnectionOptions,
    prefix: keys.queuePrefix(address.fp),
    concurrency,
  });
  for (const event of ['completed', 'failed'] as const) {
    worker.on(event, (job: Job | undefined) => unfinished.delete(job?.id ?? ''));
  }
  let draining = false;
  worker.on('lockRenewalFailed', (jobIds: string[]) => {
    for (const id of jobIds) worker.cancelJob(id, 'the lock was lost');
  });
  brakeOnErrors(worker, () => draining, log);
  return {
    start: () => {
      worker.run().catch((error) => log.error({ reason: messageOf(error) }, 'the queue consumer ended'));
    },
    drain: async () => {
      draining = true;
      worker.cancelAllJobs('stopping');
      await worker.pause(true).catch(() => {});
      await Promise.allSettled(inHand);
      // A job that is left behind would keep its chunk from others until its lock has run out.
      for (let ms = 0; ms < finishMs && unfinished.size > 0; ms += 10) await sleep(10);
      // Forced, and as the first close: it returns at once whatever state Redis is in. Chunks were handed back before.
      await worker.close(true).catch(() => {});
    },
  };
}

/** While Redis refuses commands BullMQ asks again without a pause, thousands of times a second: take it off for a moment. */
function brakeOnErrors(worker: Worker, isDraining: () => boolean, log: Log): void {
  let braking = false;
  worker.on('error', async (error) => {
    if (braking || isDraining()) return;
    braking = true;
    log.warn({ reason: messageOf(error) }, 'the queue has trouble with Redis');
    await worker.pause(true).catch(() => {});
    await sleep(brakeMs);
    braking = false;
    if (!isDraining()) await worker.resume();
  });
}
