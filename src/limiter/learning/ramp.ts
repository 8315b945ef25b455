import { type LearnedRate, step } from './learned-rate.ts';
import { rateRules as rules } from './rate-rules.ts';

/** A rate that is accepted and one that was refused, a second. */
export type Bounds = { low: number; high: number };

/** What a refusal cost: throttled requests, and how long the target asked all processes to wait. */
type Cost = { refused: number; blockedMs: number; isHasty?: boolean };

export const noCost: Cost = { refused: 0, blockedMs: 0 };

/**
 * Settles on new bounds: a step to just under `low`, from where the rate creeps up again, past `high`. What the refusal
 * that led here cost decides how slowly, because the next one will cost about as much.
 */
export function startRamp(state: LearnedRate, bounds: Bounds, cost: Cost, fromMs: number, cycleMs = 0): LearnedRate {
  const low = Math.max(bounds.low, rules.leastPerSecond);
  const high = Math.max(bounds.high, low);
  const line =
    cost.blockedMs > 0 ? tightLine(low, high) : { from: low * (1 - rules.under), to: high * (1 + rules.over) };
  const known = knownLimit(state);
  const rampMs = rampLength(low, high / low - 1, cost, cycleMs);
  const climbMs = Math.max(rules.climbMs, cycleMs, rules.climbLatencies * state.latencyMs);
  const hasFallen = low < known * rules.fallen;
  const next = { ...state, ...line, low, high, rampMs, climbMs, rampedMs: 0, known: hasFallen ? 0 : known };
  return step(next, line.from, 'ramp', fromMs);
}

/** The limit that was known well last, by the ramp that ends or one before. One that was refused at once says nothing: it is still being looked for. */
export function knownLimit({ low, high, rampedMs, known }: LearnedRate): number {
  return high < low * rules.knownWell && rampedMs >= rules.knownMs ? low : known;
}

/** After a Retry-After the target's burst is full again, and the next refusal is dear: no need to go far from the bounds. */
function tightLine(low: number, high: number): { from: number; to: number } {
  const room = Math.max(high - low, low * rules.tightOver);
  return { from: low - Math.min(low * rules.under, room * rules.tightUnder), to: low + room };
}

/**
 * So long that the refusal at its end costs no more than its price. Where that is a wait, bounds that are far apart are looked
 * into sooner, because a long way under the limit costs more than a wait.
 */
function rampLength(low: number, spread: number, cost: Cost, cycleMs: number): number {
  const refusedMs = (cost.refused / low) * 1000;
  const answersMs = ((cost.isHasty ? rules.hastyAnswers : rules.manyAnswers) / low) * 1000;
  const forAnswers = Math.max(cost.isHasty ? 0 : refusedMs / rules.refusedPrice, answersMs);
  const longestMs = Math.max(rules.longestMs, 5 * cycleMs, answersMs);
  const length = Math.max(rules.shortestMs, Math.min(longestMs, forAnswers));
  if (cost.blockedMs === 0) return length;
  const forWait = (cost.blockedMs / rules.blockedPrice) * Math.min(1, rules.narrow / spread) ** 2;
  const longestBlockedMs = Math.max(rules.longestBlockedMs, cost.blockedMs / rules.longBlockedPrice);
  return Math.max(length, Math.min(longestBlockedMs, forWait));
}

/**
 * The burst a target seems to allow, in milliseconds of its limit: the shortest until ramps began above the limit again and
 * again, which happens while a larger burst hides that they do.
 */
export function burstMs(early: number): number {
  return Math.min(rules.longestBurstMs, rules.shortestBurstMs * 2 ** Math.max(0, early - 1));
}

/**
 * The limit (a second) of a target whose burst was full when the ramp began and is used up now: the rate above which just so
 * many requests were sent. A Retry-After leaves time to fill it. Found by halving, between half the first rate and the last.
 */
export function limitOnRamp(state: LearnedRate, early: number): number {
  const untilMs = Math.max(state.rampedMs / 2, state.rampedMs - rules.behindMs);
  let low = state.from / 2;
  let high = rateOn(state, untilMs);
  for (let round = 0; round < 20; round++) {
    const limit = (low + high) / 2;
    if (sentAbove(limit, state, untilMs) > (limit * burstMs(early)) / 1000) low = limit;
    else high = limit;
  }
  return low;
}

/** The `early` after this one: one more after a ramp that began above the limit, one less after a whole one, none after a fall. */
export function nextEarly(state: LearnedRate, early: number): number {
  const { from, rampedMs, rampMs } = state;
  const limit = limitOnRamp(state, early);
  if (limit < from * rules.fallen) return 0;
  if (limit < from * (1 - rules.surelyAbove)) return early + 1;
  return rampedMs > rampMs ? Math.max(0, early - 1) : early;
}

/** A straight line from one rate (a second) to another in `rampMs`, then a climb that grows steeper: `climb` in `climbMs`, 8 times that in twice this time. */
type RampLine = { from: number; to: number; rampMs: number; climbMs: number };

/** The rate after so much of the ramp. */
export function rateOn({ from, to, rampMs, climbMs }: RampLine, afterMs: number): number {
  if (afterMs < rampMs) return from + (to - from) * (afterMs / rampMs);
  return Math.min(rules.mostPerSecond, to * (1 + rules.climb * ((afterMs - rampMs) / climbMs) ** 3));
}

/** The mean rate of the last `ms`, a second, where nothing was sent before the ramp. */
export function meanOnRamp(line: RampLine & { rampedMs: number }, ms: number): number {
  const from = Math.max(0, line.rampedMs - ms);
  return ((line.rampedMs - from) / Math.max(1, ms)) * meanBetween(line, from, line.rampedMs, (rate) => rate);
}

/** How many requests the ramp sends above a limit until then. */
function sentAbove(limit: number, line: RampLine, untilMs: number): number {
  return meanBetween(line, 0, untilMs, (rate) => Math.max(0, rate - limit)) * (untilMs / 1000);
}

function meanBetween(line: RampLine, fromMs: number, untilMs: number, of: (rate: number) => number): number {
  const parts = 100;
  let sum = 0;
  for (let part = 0; part < parts; part++)
    sum += of(rateOn(line, fromMs + ((part + 0.5) / parts) * (untilMs - fromMs)));
  return sum / parts;
}
