import { messageOf } from '../errors.ts';
import type { Pulse } from '../pulse.ts';
import { describeRejection } from '../redis/errors.ts';
import { keys } from '../redis/keys.ts';
import { sendHeartbeat } from '../schedule/heartbeat.ts';
import { nextOccurrence } from '../schedule/occurrences.ts';
import { reconcile } from '../schedule/reconcile.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { listSchedules, type ScheduleDeps } from '../schedule/schedule-store.ts';
import { withTimeout } from '../wait.ts';
import { Backoff } from './backoff.ts';
import { type Part, repeat } from './parts.ts';

const checkEveryMs = 3_000;
const lateMs = 7_000; // how much later than expected the next check may be, until a source counts as gone
const heartbeatWaits = { firstMs: 3_000, maxMs: 300_000 };
const drainMs = 500; // a lease that is not released expires

/**
 * Handles the schedules whose source this process has: checks them every 3 s, an idle process when one of them is due, and says in Redis which sources
 * it has. Even if several processes do this at once, each occurrence is handled once.
 */
export class Scheduler {
  readonly #deps: ScheduleDeps;
  readonly #stop = new AbortController();
  readonly #reconciling = new Map<string, Promise<void>>();
  readonly #heartbeats = new Map<string, Backoff>(); // of schedules whose heartbeat failed
  readonly #beating = new Set<string>(); // schedules whose heartbeat is being sent

  constructor(deps: ScheduleDeps) {
    this.#deps = deps;
  }

  /** The parts, in the order in which they start; none for a process without sources. */
  get parts(): Part[] {
    if (Object.keys(this.#deps.sources).length === 0) return [];
    return [
      { name: 'schedules', drain: () => this.#drain() },
      repeat('scheduler', checkEveryMs, (pulse) => this.#checkAll(pulse), this.#deps.log),
    ];
  }

  async #drain(): Promise<void> {
    this.#stop.abort();
    await withTimeout(drainMs, Promise.all(this.#reconciling.values()));
  }

  /** Returns the time until the next occurrence. */
  async #checkAll(pulse: Pulse): Promise<number> {
    const { ledger, target, sources, now } = this.#deps;
    const presentMs = pulse.everyMs(checkEveryMs) + lateMs;
    for (const source of Object.keys(sources))
      await ledger.redis.set(keys.scheduleSource(target.fp, source), '', 'PX', presentMs);
    let dueMs = Number.POSITIVE_INFINITY;
    for (const schedule of await listSchedules(ledger.redis, target.fp)) {
      if (sources[schedule.from] === undefined) continue;
      void this.#reconcile(schedule.name);
      void this.#sendHeartbeat(schedule);
      if (schedule.state === 'active') dueMs = Math.min(dueMs, nextOccurrence(schedule, now()) - now());
    }
    return dueMs;
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
