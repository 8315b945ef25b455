import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import type { Log } from '../logger.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { keys } from '../redis/keys.ts';
import { withTimeout } from '../wait.ts';
import { backOffOnErrors, errorBackoffMs, errorLogger, lazily, workerOptions } from './queue.ts';
import { notifierQueueName } from './queues.ts';

/** The schedules of one source of a target. Only a process that has the source listens to their notifications. */
export type NotifierAddress = { fp: string; source: string; connection: QueueConnection };

/** The times at which a schedule is due. */
type NotifierTimes = { cron: string; tz: string };

/** Makes BullMQ notify the listeners when a schedule is due. The record of the schedule decides what happens then. */
export type Notifier = {
  /** Sets the job scheduler of a schedule if it is missing or has other times, or if BullMQ has lost its next time. Repeating it changes nothing. */
  ensure(schedule: string, times: NotifierTimes): Promise<void>;
  /** Removes the job scheduler. Repeating it changes nothing. */
  remove(schedule: string): Promise<void>;
  close(): Promise<void>;
};

const overdueAfterMs = 30_000;
const closeMs = 400;

/**
 * Opens the notifier for the schedules of one source. It connects with its first use. Its queue is never paused, because BullMQ would notify twice
 * afterwards.
 */
export function openNotifier({ fp, source, connection }: NotifierAddress): Notifier {
  const queue = lazily(() => {
    const made = new Queue(notifierQueueName(source), {
      connection: connection as ConnectionOptions,
      prefix: keys.queuePrefix(fp),
      streams: { events: { maxLen: 100 } },
    });
    made.on('error', () => {}); // the caller gets the error; without a listener it would be written to the console
    return made;
  });
  const set = (schedule: string, { cron, tz }: NotifierTimes) =>
    queue().upsertJobScheduler(
      schedule,
      { pattern: cron, tz },
      { name: 'notify', data: { schedule }, opts: notificationOptions },
    );
  return {
    ensure: async (schedule, times) => {
      const scheduler = await queue().getJobScheduler(schedule);
      const isRight = scheduler?.pattern === times.cron && scheduler.tz === times.tz;
      if (!isRight || (scheduler.next ?? 0) < Date.now() - overdueAfterMs) await set(schedule, times);
    },
    remove: async (schedule) => void (await queue().removeJobScheduler(schedule)),
    close: async () => void (queue.made && (await withTimeout(closeMs, queue.made.close()))),
  };
}

const notificationOptions = { removeOnComplete: true, removeOnFail: true };

/** Receives the notifications of one source. */
export type Listener = { start(): void; drain(): Promise<void> };

/**
 * Opens a listener, which connects when it starts. `onNotification` gets the name of a due schedule. It is not awaited, so that it never delays the
 * next notification.
 */
export function openListener(
  { fp, source, connection }: NotifierAddress,
  onNotification: (schedule: string) => void,
  log: Log,
): Listener {
  const notify = async (job: { data: { schedule: string } }) => onNotification(job.data.schedule);
  const logError = errorLogger(log, 'the schedule notifier got an error from Redis', () => performance.now());
  const worker = lazily(() => {
    const made = new Worker<{ schedule: string }>(notifierQueueName(source), notify, {
      ...workerOptions,
      connection: connection as ConnectionOptions,
      prefix: keys.queuePrefix(fp),
      autorun: false,
    });
    made.on('error', logError);
    return made;
  });
  let isDrained = false;
  const listen = async (): Promise<void> => {
    while (!isDrained) {
      const made = worker();
      const isReady = await made.waitUntilReady().then(
        () => true,
        () => false, // the worker emits its errors
      );
      if (isReady) {
        backOffOnErrors(made);
        return made.run();
      }
      await sleep(errorBackoffMs);
    }
  };
  return {
    start: () => void listen().catch(logError),
    // A forced first close returns at once, whatever state Redis is in. The next reconciliation makes up for a lost notification.
    drain: async () => {
      isDrained = true;
      await worker.made?.close(true).catch(() => {});
    },
  };
}
