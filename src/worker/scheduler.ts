import { messageOf } from '../errors.ts';
import { type Listener, type Notifier, openListener, openNotifier } from '../queue/notifier.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { describeRejection } from '../redis/errors.ts';
import { sendHeartbeat } from '../schedule/heartbeat.ts';
import { reconcile } from '../schedule/reconcile.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { listSchedules, readSchedule, type ScheduleDeps } from '../schedule/schedule-store.ts';
import { withTimeout } from '../wait.ts';
import { Backoff } from './backoff.ts';
import { type Part, repeat } from './parts.ts';

const checkEveryMs = 3_000;
const heartbeatWaits = { firstMs: 3_000, maxMs: 300_000 };
const drainMs = 500; // a lease that is not released expires

/**
 * Handles the schedules whose source this process has: listens for their notifications, and checks them every 3 s. A check restores notifications
 * that BullMQ has lost, and handles occurrences whose notification was missed. Even if several processes do this at once, each occurrence is handled
 * once.
 */
export class Scheduler {
  readonly #deps: ScheduleDeps;
  readonly #sources: { notifier: Notifier; listener: Listener; name: string }[];
  readonly #stop = new AbortController();
  readonly #reconciling = new Map<string, Promise<void>>();
  readonly #heartbeats = new Map<string, Backoff>(); // of schedules whose heartbeat failed
  readonly #beating = new Set<string>(); // schedules whose heartbeat is being sent

  constructor(deps: ScheduleDeps, connection: QueueConnection) {
    this.#deps = deps;
    this.#sources = Object.keys(deps.sources).map((name) => {
      const address = { fp: deps.target.fp, source: name, connection };
      const listener = openListener(address, (schedule) => void this.#onNotified(name, schedule), deps.log);
      return { name, notifier: openNotifier(address), listener };
    });
  }

  /** The parts, in the order in which they start; none for a process without sources. */
  get parts(): Part[] {
    if (this.#sources.length === 0) return [];
    return [
      { name: 'schedules', drain: () => this.#drain() },
      { name: 'schedule listeners', start: () => this.#startListeners(), drain: () => this.#drainListeners() },
      repeat('scheduler', checkEveryMs, () => this.#checkAll(), this.#deps.log),
    ];
  }

  #startListeners(): void {
    for (const { listener } of this.#sources) listener.start();
  }

  async #drainListeners(): Promise<void> {
    await Promise.all(this.#sources.map(({ listener }) => listener.drain()));
  }

  async #drain(): Promise<void> {
    this.#stop.abort();
    await withTimeout(drainMs, Promise.all(this.#reconciling.values()));
    await Promise.all(this.#sources.map(({ notifier }) => notifier.close()));
  }

  async #checkAll(): Promise<void> {
    const { ledger, target } = this.#deps;
    for (const schedule of await listSchedules(ledger.redis, target.fp)) {
      const source = this.#sources.find(({ name }) => name === schedule.from);
      if (source === undefined) continue;
      await updateNotifier(source.notifier, schedule);
      void this.#reconcile(schedule.name);
      void this.#sendHeartbeat(schedule);
    }
  }

  /** Handles a notification. If the schedule is gone or paused, removes the notification. */
  async #onNotified(source: string, name: string): Promise<void> {
    try {
      const { ledger, target } = this.#deps;
      const schedule = await readSchedule(ledger.redis, target.fp, name);
      if (schedule?.from === source && schedule.state === 'active') await this.#reconcile(name);
      else await this.#sources.find((one) => one.name === source)?.notifier.remove(name);
    } catch (error) {
      this.#deps.log.warn(
        { schedule: name, reason: messageOf(error) },
        'a due schedule was not handled, checking again later',
      );
    }
  }

  /** Reconciles a schedule, with one call at a time: a call that is already running sees the same state. Never rejects. */
  #reconcile(name: string): Promise<void> {
    const known = this.#reconciling.get(name);
    if (known) return known;
    const task = reconcile(this.#deps, name, this.#stop.signal)
      .catch((error) => this.#logFailure(name, error))
      .finally(() => this.#reconciling.delete(name));
    this.#reconciling.set(name, task);
    return task;
  }

  /** Sends a heartbeat. A monitor that is away or slow delays neither schedules nor runs. Never rejects. */
  async #sendHeartbeat(schedule: Schedule): Promise<void> {
    const { ledger, target, proxy, now } = this.#deps;
    const { name, heartbeatDue } = schedule;
    const backoff = this.#heartbeats.get(name) ?? new Backoff({ ...heartbeatWaits, random: Math.random });
    if (heartbeatDue === null || this.#beating.has(name) || backoff.isWaiting(now())) return;
    this.#beating.add(name);
    const deps = { redis: ledger.redis, fp: target.fp, route: { ca: null, proxy }, stop: this.#stop.signal, now };
    const reason = await sendHeartbeat(deps, schedule).catch(messageOf);
    this.#beating.delete(name);
    if (reason === '') {
      this.#heartbeats.delete(name);
      return;
    }
    this.#heartbeats.set(name, backoff);
    backoff.failed(now());
    this.#deps.log[backoff.logLevel]({ schedule: name, reason }, 'a heartbeat was not sent, trying again');
  }

  /** Logs a failure. The target sender logs rejected writes, so for each schedule they are logged at debug level. */
  #logFailure(schedule: string, error: unknown): void {
    const level = describeRejection(error) === '' ? 'warn' : 'debug';
    this.#deps.log[level]({ schedule, reason: messageOf(error) }, 'a schedule failed, checking again later');
  }
}

async function updateNotifier(notifier: Notifier, { name, state, cron, tz }: Schedule): Promise<void> {
  if (state === 'active') await notifier.ensure(name, { cron, tz });
  else await notifier.remove(name);
}
