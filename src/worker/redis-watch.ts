import { duration } from '../format.ts';
import type { Log } from '../logger.ts';
import { type Part, repeat } from './parts.ts';

const lookEveryMs = 1_000;
const saysEveryMs = 60_000;

/** Logs that Redis is away, once a minute for as long as it lasts, and that it is back, even for a worker that has no question for Redis. */
export class RedisWatch {
  readonly #log: Log;
  readonly #redis: string;
  #away: { since: number; saidAt: number } | null = null;

  /** `redis`: the label of its address. */
  constructor(redis: string, log: Log) {
    this.#redis = redis;
    this.#log = log;
  }

  /** Takes the present state: why there is no connection, or null if there is one. `now`: monotonic ms. */
  see(reason: string | null, now: number): void {
    if (reason === null) this.#sayBack(now);
    else this.#sayAway(reason, now);
  }

  #sayAway(reason: string, now: number): void {
    this.#away ??= { since: now, saidAt: Number.NEGATIVE_INFINITY };
    if (now - this.#away.saidAt < saysEveryMs) return;
    this.#away.saidAt = now;
    this.#log.warn({ redis: this.#redis, reason, since: duration(now - this.#away.since) }, 'Redis is away');
  }

  #sayBack(now: number): void {
    if (this.#away !== null)
      this.#log.info({ redis: this.#redis, after: duration(now - this.#away.since) }, 'Redis is back');
    this.#away = null;
  }
}

/** The part of a worker that watches Redis; it starts once there was a connection. */
export function redisWatchPart(watch: RedisWatch, reason: () => string | null, log: Log): Part {
  return repeat('Redis', lookEveryMs, async () => watch.see(reason(), performance.now()), log);
}
