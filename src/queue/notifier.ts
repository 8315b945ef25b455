import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import type { Log } from '../logger.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { keys } from '../redis/keys.ts';
import { backOffOnErrors, countListeners, errorLogger, lazily, notifierQueueName, workerOptions } from './queue.ts';
import { withTimeout } from './with-timeout.ts';

/** The schedules of one source of a target: only a process that has the source listens to them. */
export type NotifierAddress = { fp: string; source: string; connection: QueueConnection };

/** When a schedule is due. */
type NotifierTimes = { cron: string; tz: string };

/** Sends a notification when a schedule is due. What is to be done then is in the record of the schedule. */
export type Notifier = {
  /** Sets the job scheduler of a schedule where it is missing, has other times, or BullMQ has lost its next time. */
  ensure(schedule: string, times: NotifierTimes): Promise<void>;
  remove(schedule: string): Promise<void>;
  /** How many processes listen, or null if Redis doesn't tell. */
  listeners(): Promise<number | null>;
  close(): Promise<void>;
};

const lostAfterMs = 30_000;
const closeMs = 400;

/** Its queue is never paused: BullMQ would notify twice after that. It connects with its first use. */
export function openNotifier({ fp, source, connection }: NotifierAddress): Notifier {
  const queue = lazily(() => {
    const made = new Queue(notifierQueueName(source), {
      connection: connection as ConnectionOptions,
      prefix: keys.queuePrefix(fp),
      streams: { events: { maxLen: 100 } },
    });
    made.on('error', () => {}); // whoever waits for an answer gets the error; without a listener it would reach the console
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
      if (!isRight || (scheduler.next ?? 0) < Date.now() - lostAfterMs) await set(schedule, times);
    },
    remove: async (schedule) => void (await queue().removeJobScheduler(schedule)),
    listeners: () => countListeners(queue()),
    close: async () => void (queue.made && (await withTimeout(closeMs, queue.made.close()))),
  };
}

const notificationOptions = { removeOnComplete: true, removeOnFail: true };

/** Receives the notifications. */
export type Listener = { start(): void; drain(): Promise<void> };

/** Connects when it starts. `onNotification` gets the schedule that is due; it is not awaited, so that it never delays the next notification. */
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
    backOffOnErrors(made);
    return made;
  });
  return {
    start: () => void worker().run().catch(logError),
    // Forced, and as the first close: it returns at once whatever state Redis is in. A lost notification is recovered by the next reconciliation.
    drain: async () => worker.made?.close(true).catch(() => {}),
  };
}
