import { paceOf, type Rate } from './rate.ts';
import { type TimeWindow, windowStateAt } from './time-window.ts';

/** A bound on the requests of any period, and how much of it is used. `freeAt`: when that is free again, ms since 1970, if it is known. */
type Quota = { count: number; perMs: number; used: number; freeAt?: number };

/** What was learned about the rate of a target. `isLimit`: a higher rate was refused; otherwise nobody knows how much more it takes. */
type Learned = { perSecond: number; silentMs: number; isLimit: boolean };

/** What is to be sent, and all that decides how long that takes. */
export type Work = {
  requests: number;
  rate: Rate | null; // of the run itself, of which nothing is used yet
  pin: Rate | null; // of the target
  learned: Learned | null;
  quotas: readonly Quota[]; // all others: of the budget, and whatever else counts requests
  window: TimeWindow | null;
  stopAt: number; // when it pauses, ms since 1970; 0 = never
  maxActiveMs: number; // after how long it pauses; 0 = never
};

/** What decides an end. */
export type Cause = 'rate' | 'pin' | 'learned' | 'quota' | 'window' | 'unknown';

/** When a run ends, as far as can be said before. */
export type Forecast = {
  at: number; // when it was made, ms since 1970
  seconds: number | null; // expected; null = the speed of the API is not known
  secondsFrom: number; // at least; infinite = never
  secondsTo: number | null; // at most, if nothing fails; null = not known
  perSecond: number | null; // the rate that it is made with
  causes: readonly Cause[];
  openings: number; // the times its window is open meanwhile; 0 = it has none
  zone: string | null; // of its window
  fits: number | null; // how many requests are sent before it pauses; null = all of them
  learned: Learned | null; // where the rate was learned
};

/** The most likely end, the earliest, and the latest one, if nothing fails. A run of any length takes a bounded time to forecast. Pure. */
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

/** The moment up to which nothing better is known: what is to be over by then has to be after this one. Ms since 1970. */
export function endOf({ at, seconds, secondsFrom }: Forecast): number {
  return at + 1_000 * (seconds ?? secondsFrom);
}

/** The lowest rate, per second, at which all is sent by a deadline; null where quotas, window and pauses allow none. Pure. */
export function neededRate(work: Work, deadline: number, now: number): number | null {
  const bounds = { ...boundsOf(work), stopAt: Math.min(deadline, work.stopAt || deadline) };
  const isEnough = (perSecond: number) => send(work.requests, perSecond, bounds, now, 'late').left === 0;
  if (!isEnough(Number.POSITIVE_INFINITY)) return null;
  let [low, high] = [0, 1_000_000];
  for (let round = 0; round < bisections; round++) {
    const middle = low === 0 ? high / 2 : (low + high) / 2;
    if (isEnough(middle)) high = middle;
    else low = middle;
  }
  return high;
}

const bisections = 40;

/** Ms until `requests` are sent at a speed that was measured, under quotas and a window; infinite = never. Pure. */
export function timeToSend(
  requests: number,
  perSecond: number,
  { quotas, window }: Pick<Work, 'quotas' | 'window'>,
  now: number,
): number {
  return send(requests, perSecond, { quotas, window, stopAt: 0, maxActiveMs: 0 }, now, 'late').at - now;
}

type Speeds = { fastest: number; expected: number | null; slowest: number | null; cause: Cause };

const dayMs = 86_400_000;
const freshMargin = 1.15;
const oldMargin = 1.5; // a limit that was learned more than a day ago may be another one now

function speedsOf({ rate, pin, learned }: Work): Speeds {
  const [own, pinned] = [rate, pin].map((bound) => (bound === null ? Number.POSITIVE_INFINITY : paceOf(bound)));
  const cap = Math.min(own!, pinned!);
  const set: Cause = cap === Number.POSITIVE_INFINITY ? 'unknown' : pinned! < own! ? 'pin' : 'rate';
  if (learned === null) return { fastest: cap, expected: null, slowest: null, cause: set };
  const margin = learned.silentMs > dayMs ? oldMargin : freshMargin;
  const slowest = Math.min(cap, learned.perSecond / margin);
  if (learned.perSecond >= cap) return { fastest: cap, expected: cap, slowest, cause: set };
  if (!learned.isLimit) return { fastest: cap, expected: null, slowest, cause: 'learned' };
  const fastest = Math.min(cap, learned.perSecond * margin);
  return { fastest, expected: learned.perSecond, slowest, cause: 'learned' };
}

type Bounds = Pick<Work, 'quotas' | 'window' | 'stopAt' | 'maxActiveMs'>;

function boundsOf({ rate, pin, quotas, window, stopAt, maxActiveMs }: Work): Bounds {
  const further = [rate, pin].flatMap((bound) => bound?.slice(1) ?? []);
  const all = [...further.map((bound) => ({ ...bound, used: 0 })), ...quotas];
  return { quotas: all, window, stopAt, maxActiveMs };
}

/** Whether what is used of a quota, and how exactly it is counted, is taken for the better or for the worse. */
type Likely = 'soonest' | 'late';

/** Where a run has come to. `waits`: what it waited for. */
type Sent = { at: number; left: number; openings: number; waits: ReadonlySet<Cause> };

const mostSteps = 500; // then the rest is as fast as all before
const slices = 60; // of the period of a quota, the oldest of which counts in full

/** Sends requests as fast as the bounds allow, one stretch without a wait after the other. */
function send(requests: number, perSecond: number, bounds: Bounds, now: number, likely: Likely): Sent {
  const logs = bounds.quotas.map((quota) => new Log(quota, now, likely));
  const waits = new Set<Cause>();
  let [at, left, openings, closesAt, steps] = [now, requests, 0, now, 0];
  let activeUntil = bounds.maxActiveMs === 0 ? Number.POSITIVE_INFINITY : now + bounds.maxActiveMs;
  const stopsAt = () => Math.min(bounds.stopAt || Number.POSITIVE_INFINITY, activeUntil);
  const end = (endsAt: number) => ({ at: endsAt, left, openings, waits });
  for (; left > 0 && steps < mostSteps; steps++) {
    if (at >= stopsAt()) return end(stopsAt());
    if (at >= closesAt) {
      const { isOpen, until } = stateAt(bounds.window, at);
      if (!isOpen) {
        waits.add('window');
        activeUntil += until - at; // a closed window is no deleting time
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
  const endsAt = at + ((at - now) / (requests - left)) * left;
  if (endsAt <= stopsAt()) left = 0;
  else left = Math.ceil((left * (endsAt - stopsAt())) / (endsAt - at));
  return end(Math.min(endsAt, stopsAt()));
}

function stateAt(window: TimeWindow | null, at: number) {
  return window === null ? { isOpen: true, until: Number.POSITIVE_INFINITY } : windowStateAt(window, at);
}

/** What was sent in the last period of a quota. */
class Log {
  readonly #perMs: number;
  readonly #sent: { at: number; n: number }[] = [];
  #head = 0;
  room: number;

  constructor({ count, perMs, used, freeAt }: Quota, now: number, likely: Likely) {
    this.#perMs = likely === 'soonest' ? perMs : (perMs * (slices + 1)) / slices;
    this.room = count;
    const isForgotten = likely === 'soonest' && freeAt === undefined; // it may be from the beginning of the period
    if (used > 0 && !isForgotten) this.add((freeAt ?? now + perMs) - this.#perMs, Math.min(used, count));
  }

  /** When there is room, from `at` on. */
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
