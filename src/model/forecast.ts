import { paceOf, type Rate } from './rate.ts';
import { type TimeWindow, windowStateAt } from './time-window.ts';

/** A limit on the requests in any period, and how much of it is used. `freeAt`: when that is free again, ms since 1970, if known. */
type Quota = { count: number; perMs: number; used: number; freeAt?: number };

/** The learned rate of a target. `isLimit`: a higher rate was refused; otherwise it is unknown how much more the target accepts. */
type Learned = { perSecond: number; silentMs: number; isLimit: boolean };

/** The requests to be sent, and everything that decides how long that takes. */
export type Work = {
  requests: number;
  rate: Rate | null; // the rate of the run itself, none of which is used yet
  limit: number | null; // what the limit of the target allows, per second
  learned: Learned | null;
  quotas: readonly Quota[]; // all other quotas: those of the limit of the target
  window: TimeWindow | null;
  startsAt: number; // the time before which nothing is sent, ms since 1970; 0 = it starts at once
  stopAt: number; // the time when it pauses, ms since 1970; 0 = never
  maxActiveMs: number; // the deleting time after which it pauses, in ms; 0 = never
};

/** The bound that decides the end. */
type Cause = 'rate' | 'limit' | 'learned' | 'quota' | 'window' | 'unknown';

/** The expected end of a run, as far as it can be known before. */
export type Forecast = {
  at: number; // the time of the forecast, ms since 1970
  seconds: number | null; // expected duration; null = the speed of the API is not known
  secondsFrom: number; // shortest duration; infinite = never
  secondsTo: number | null; // longest duration, if nothing fails; null = not known
  perSecond: number | null; // the rate that the forecast assumes
  causes: readonly Cause[];
  openings: number; // number of times its window is open until then; 0 = it has no window
  zone: string | null; // the time zone of its window
  fits: number | null; // number of requests that are sent before it pauses; null = all of them
  learned: Learned | null; // the learned rate, if one was used
};

/** Forecasts the most likely, the earliest, and the latest end, if nothing fails. The time to compute it is bounded, however long the run. Pure. */
export function forecast(work: Work, now: number): Forecast {
  const speeds = speedsOf(work);
  const bounds = boundsOf(work);
  const end = (perSecond: number, likely: Likely) => send(work.requests, perSecond, bounds, now, likely);
  const soonest = end(speeds.fastest, 'soonest');
  const expected = speeds.expected === null ? null : end(speeds.expected, 'late');
  const shown = expected ?? soonest;
  return {
    at: now,
    seconds: expected && secondsSince(now, expected),
    secondsFrom: secondsSince(now, soonest),
    secondsTo: speeds.slowest === null ? null : secondsSince(now, end(speeds.slowest, 'late')),
    perSecond: finite(speeds.expected ?? (speeds.cause === 'learned' ? speeds.slowest : speeds.fastest)),
    causes: [speeds.cause, ...shown.waits],
    openings: work.window === null ? 0 : shown.openings,
    zone: work.window?.tz ?? null,
    fits: shown.left > 0 ? work.requests - shown.left : null,
    learned: speeds.cause === 'learned' ? work.learned : null,
  };
}

/** The expected end, or the earliest if nothing better is known; ms since 1970. */
export function forecastEnd({ at, seconds, secondsFrom }: Forecast): number {
  return at + 1_000 * (seconds ?? secondsFrom);
}

/** The time in ms until `requests` are sent at a measured speed, under quotas and a window; infinite = never. Pure. */
export function timeToSend(
  requests: number,
  perSecond: number,
  { quotas, window, startsAt }: Pick<Work, 'quotas' | 'window'> & Partial<Pick<Work, 'startsAt'>>,
  now: number,
): number {
  const bounds = { quotas, window, startsAt: startsAt ?? 0, stopAt: 0, maxActiveMs: 0 };
  return send(requests, perSecond, bounds, now, 'late').at - now;
}

type Speeds = { fastest: number; expected: number | null; slowest: number | null; cause: Cause };

const dayMs = 86_400_000;
const freshMargin = 1.15;
const oldMargin = 1.5; // a limit that was learned more than a day ago may have changed

function speedsOf({ rate, limit, learned }: Work): Speeds {
  const own = rate === null ? Number.POSITIVE_INFINITY : paceOf(rate);
  const ofTarget = limit ?? Number.POSITIVE_INFINITY;
  const cap = Math.min(own, ofTarget);
  const set: Cause = cap === Number.POSITIVE_INFINITY ? 'unknown' : ofTarget < own ? 'limit' : 'rate';
  if (learned === null) return { fastest: cap, expected: null, slowest: null, cause: set };
  const margin = learned.silentMs > dayMs ? oldMargin : freshMargin;
  const slowest = Math.min(cap, learned.perSecond / margin);
  if (learned.perSecond >= cap) return { fastest: cap, expected: cap, slowest, cause: set };
  if (!learned.isLimit) return { fastest: cap, expected: null, slowest, cause: 'learned' };
  const fastest = Math.min(cap, learned.perSecond * margin);
  return { fastest, expected: learned.perSecond, slowest, cause: 'learned' };
}

type Bounds = Pick<Work, 'quotas' | 'window' | 'startsAt' | 'stopAt' | 'maxActiveMs'>;

function boundsOf({ rate, quotas, window, startsAt, stopAt, maxActiveMs }: Work): Bounds {
  const [, ...further] = rate ?? [];
  const all = [...further.map((bound) => ({ ...bound, used: 0 })), ...quotas];
  return { quotas: all, window, startsAt, stopAt, maxActiveMs };
}

/** Whether the use of a quota, and the way it is counted, is assumed to be favourable or unfavourable. */
type Likely = 'soonest' | 'late';

/** The progress of a run in a forecast. `waits`: the causes of its waits. */
type Sent = { at: number; left: number; openings: number; waits: ReadonlySet<Cause> };

const maxSteps = 500; // after that, the rest is as fast as everything before
const slices = 60; // of the period of a quota; the oldest slice counts in full

/** Sends requests as fast as the bounds allow, one stretch without a wait after the other. */
function send(requests: number, perSecond: number, bounds: Bounds, now: number, likely: Likely): Sent {
  const logs = bounds.quotas.map((quota) => new Log(quota, now, likely));
  const waits = new Set<Cause>();
  const begin = Math.max(now, bounds.startsAt);
  let [at, left, openings, closesAt, steps] = [begin, requests, 0, begin, 0];
  let activeUntil = bounds.maxActiveMs === 0 ? Number.POSITIVE_INFINITY : begin + bounds.maxActiveMs;
  const stopsAt = () => Math.min(bounds.stopAt || Number.POSITIVE_INFINITY, activeUntil);
  const end = (endsAt: number) => ({ at: endsAt, left, openings, waits });
  for (; left > 0 && steps < maxSteps; steps++) {
    if (at >= stopsAt()) return end(stopsAt());
    if (at >= closesAt) {
      const { isOpen, until } = stateAt(bounds.window, at);
      if (!isOpen) {
        waits.add('window');
        activeUntil += until - at; // time with a closed window does not count as deleting time
        at = until;
        if (at === Number.POSITIVE_INFINITY) return end(Math.min(at, stopsAt()));
        continue;
      }
      closesAt = until;
      openings++;
    }
    const freeAt = Math.max(at, ...logs.map((log) => log.freeAt(at)));
    if (freeAt > at) {
      waits.add('quota');
      at = freeAt;
      continue;
    }
    const untilMs = Math.min(closesAt, stopsAt()) - at;
    const inTime = Math.max(1, Math.floor((untilMs * perSecond) / 1_000));
    const n = Math.min(left, inTime, ...logs.map((log) => log.room));
    for (const log of logs) log.add(at, n);
    left -= n;
    if (left === 0) return end(at + ((n - 1) * 1_000) / perSecond);
    at += (n * 1_000) / perSecond;
  }
  if (left === 0) return end(at);
  const endsAt = at + ((at - begin) / (requests - left)) * left;
  if (endsAt <= stopsAt()) left = 0;
  else left = Math.ceil((left * (endsAt - stopsAt())) / (endsAt - at));
  return end(Math.min(endsAt, stopsAt()));
}

function stateAt(window: TimeWindow | null, at: number) {
  return window === null ? { isOpen: true, until: Number.POSITIVE_INFINITY } : windowStateAt(window, at);
}

/** The requests of the last period of a quota. */
class Log {
  readonly #perMs: number;
  readonly #sent: { at: number; n: number }[] = [];
  #head = 0;
  room: number;

  constructor({ count, perMs, used, freeAt }: Quota, now: number, likely: Likely) {
    this.#perMs = likely === 'soonest' ? perMs : (perMs * (slices + 1)) / slices;
    this.room = count;
    const isForgotten = likely === 'soonest' && freeAt === undefined; // the use may be from the start of the period
    if (used > 0 && !isForgotten) this.add((freeAt ?? now + perMs) - this.#perMs, Math.min(used, count));
  }

  /** The time when there is room, not before `at`. */
  freeAt(at: number): number {
    for (let first = this.#sent[this.#head]; first && first.at + this.#perMs <= at; first = this.#sent[++this.#head])
      this.room += first.n;
    return this.room > 0 ? at : this.#sent[this.#head]!.at + this.#perMs;
  }

  add(at: number, n: number): void {
    this.room -= n;
    this.#sent.push({ at, n });
  }
}

function secondsSince(now: number, { at }: Sent): number {
  return (at - now) / 1_000;
}

function finite(perSecond: number | null): number | null {
  return perSecond === Number.POSITIVE_INFINITY ? null : perSecond;
}
