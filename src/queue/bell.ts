import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import type { Log } from '../logger.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { keys } from '../redis/keys.ts';
import { bellQueueName, brake, countListeners, lazily, troubleTeller, workerOptions } from './queue.ts';
import { within } from './within.ts';

/** The bells of one source of a target: only who has the source hears them. */
export type BellAddress = { fp: string; source: string; connection: QueueConnection };

/** When a bell rings. */
type BellTimes = { cron: string; tz: string };

/** The side that sets bells. A bell only tells when to look: what is to be done stands in the record of the schedule. */
export type Bells = {
  /** Sets the bell of a schedule where there is none, where it rings at other times, or where BullMQ has lost its next time. */
  keep(schedule: string, times: BellTimes): Promise<void>;
  remove(schedule: string): Promise<void>;
  /** How many processes listen, or null if Redis doesn't tell. */
  listeners(): Promise<number | null>;
  close(): Promise<void>;
};

const lostAfterMs = 30_000;
const closeMs = 400;

/** Its queue is never paused: BullMQ would ring twice after that. It connects with its first use. */
export function openBells({ fp, source, connection }: BellAddress): Bells {
  const queue = lazily(() => {
    const made = new Queue(bellQueueName(source), {
      connection: connection as ConnectionOptions,
      prefix: keys.queuePrefix(fp),
      streams: { events: { maxLen: 100 } },
    });
    made.on('error', () => {}); // whoever waits for an answer gets the error; without a listener it would reach the console
    return made;
  });
  const set = (schedule: string, { cron, tz }: BellTimes) =>
    queue().upsertJobScheduler(
      schedule,
      { pattern: cron, tz },
      { name: 'ring', data: { schedule }, opts: bellOptions },
    );
  return {
    keep: async (schedule, times) => {
      const bell = await queue().getJobScheduler(schedule);
      const isRight = bell?.pattern === times.cron && bell.tz === times.tz;
      if (!isRight || (bell.next ?? 0) < Date.now() - lostAfterMs) await set(schedule, times);
    },
    remove: async (schedule) => void (await queue().removeJobScheduler(schedule)),
    listeners: () => countListeners(queue()),
    close: async () => void (queue.made && (await within(closeMs, queue.made.close()))),
  };
}

const bellOptions = { removeOnComplete: true, removeOnFail: true };

/** The side that hears. */
export type Ear = { start(): void; drain(): Promise<void> };

/** Connects when it starts. `heard` is told the schedule whose bell rang; what it does is not waited for, so that the next bell can ring. */
export function openEar({ fp, source, connection }: BellAddress, heard: (schedule: string) => void, log: Log): Ear {
  const ring = async (job: { data: { schedule: string } }) => heard(job.data.schedule);
  const tell = troubleTeller(log, 'the bells have trouble with Redis', () => performance.now());
  const worker = lazily(() => {
    const made = new Worker<{ schedule: string }>(bellQueueName(source), ring, {
      ...workerOptions,
      connection: connection as ConnectionOptions,
      prefix: keys.queuePrefix(fp),
      autorun: false,
    });
    made.on('error', tell);
    brake(made);
    return made;
  });
  return {
    start: () => void worker().run().catch(tell),
    // Forced, and as the first close: it returns at once whatever state Redis is in. A bell that is lost is made up for.
    drain: async () => worker.made?.close(true).catch(() => {}),
  };
}
