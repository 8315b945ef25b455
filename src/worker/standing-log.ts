import { duration, isoTime } from '../format.ts';
import type { Cause, Standing } from '../ledger/standing.ts';
import type { Log } from '../logger.ts';
import { adviceText, toTypeAnywhere } from '../model/to-type.ts';
import { visibleLine } from '../model/visible.ts';

/** A lasting cause: since when it was seen, and whether it was logged. */
type Seen = { why: Standing['why']; since: number; isLogged: boolean };

/** The causes that the part which notices them logs at once. */
const loggedElsewhere: readonly Cause[] = ['stop', 'stop_file', 'outage', 'redis_writes', 'other_definition'];

const minMs = 20_000;
const repeatAfterMs = 600_000;

/**
 * Logs why nothing is sent: one warning once a cause has lasted 20 s, and one line at its end. A cause that recurs, like the waits of a limit, is
 * logged at most every ten minutes.
 */
export class StandingLog {
  readonly #log: Log;
  readonly #seen = new Map<string, Seen>();
  readonly #loggedAt = new Map<string, number>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** `held`: the first cause for each run, and under '' for the target; a missing key is not held. `nowMs`: monotonic. */
  observe(held: ReadonlyMap<string, Standing>, nowMs: number): void {
    for (const [key, seen] of this.#seen) if (held.get(key)?.why !== seen.why) this.#end(key, seen, nowMs);
    for (const [key, standing] of held) if (!loggedElsewhere.includes(standing.why)) this.#go(key, standing, nowMs);
  }

  #go(key: string, standing: Standing, nowMs: number): void {
    const { why, text, since, until, next } = standing;
    const seen = this.#seen.get(key) ?? { why, since: nowMs, isLogged: false };
    this.#seen.set(key, seen);
    if (seen.isLogged || nowMs - seen.since < minMs) return;
    const loggedAt = this.#loggedAt.get(`${key} ${why}`);
    if (loggedAt !== undefined && nowMs - loggedAt < repeatAfterMs) return;
    seen.isLogged = true;
    this.#loggedAt.set(`${key} ${why}`, nowMs);
    const facts = {
      ...runOf(key),
      why,
      reason: visibleLine(text),
      since: since === null ? null : isoTime(since),
      until: until === null ? null : isoTime(until),
      next: next === null ? null : adviceText(next, toTypeAnywhere),
    };
    this.#log.warn(facts, 'nothing is sent');
  }

  #end(key: string, { why, since, isLogged }: Seen, nowMs: number): void {
    this.#seen.delete(key);
    if (isLogged) this.#log.info({ ...runOf(key), why, lasted: duration(nowMs - since) }, 'a hold is over');
  }
}

function runOf(key: string): { run?: string } {
  return key === '' ? {} : { run: key };
}
