import { type LearnedRate, step } from './learned-rate.ts';
import { rateRules as rules } from './rate-rules.ts';

/** An accepted and a refused rate, in requests per second. */
export type Bounds = { low: number; high: number };

/** The cost of a refusal: throttled requests, and the time for which the target asked all processes to wait. `isQuick`: the ramp may be short. */
type Cost = { refused: number; blockedMs: number; isQuick?: boolean };

export const noCost: Cost = { refused: 0, blockedMs: 0 };

/**
 * Settles on new bounds. The rate steps to just under `low` and creeps up from there, past `high`. The more the last refusal cost, the slower the
 * ramp, because the next refusal will cost about as much.
 */
export function startRamp(state: LearnedRate, bounds: Bounds, cost: Cost, fromMs: number, cycleMs = 0): LearnedRate {
  const low = Math.max(bounds.low, rules.minPerSecond);
  const high = Math.max(bounds.high, low);
  const line =
    cost.blockedMs > 0
      ? tightLine(low, high)
      : { from: low * (1 - rules.underShare), to: high * (1 + rules.overShare) };
  const known = knownLimit(state);
  const isSure =
    state.sampleWindow.acceptedTotal >= rules.knownAnswers || (known > 0 && low >= known * rules.fallenShare);
  const rampMs = Math.min(
    rampLengthMs(low, high / low - 1, cost, cycleMs),
    isSure ? Number.POSITIVE_INFINITY : rules.maxDoubtMs,
  );
  const slowClimbMs = Math.min(rules.maxClimbMs, (1_000 * rules.climbAnswers) / low);
  const climbMs = Math.max(rules.climbMs, cycleMs, rules.climbLatencies * state.latencyMs, slowClimbMs);
  const hasFallen = low < known * rules.fallenShare;
  const next = { ...state, ...line, low, high, rampMs, climbMs, rampedMs: 0, known: hasFallen ? 0 : known };
  return step(next, line.from, 'ramp', fromMs);
}

/** Returns the limit that was last known well, by this ramp or an earlier one. A limit that was refused at once is still being searched for. */
export function knownLimit({ low, high, rampedMs, known }: LearnedRate): number {
  return high < low * rules.knownWellRatio && rampedMs >= rules.knownMs ? low : known;
}

/** Keeps near the bounds: after a Retry-After the target's burst is full again, and the next refusal is expensive. */
function tightLine(low: number, high: number): { from: number; to: number } {
  const room = Math.max(high - low, low * rules.tightOverShare);
  return { from: low - Math.min(low * rules.underShare, room * rules.tightUnderShare), to: low + room };
}

/**
 * Returns the length at which the refusal at the end of the ramp costs no more than its price. If the cost is a wait and the bounds are far apart,
 * the ramp is shorter, because a long way under the limit costs more than a wait.
 */
function rampLengthMs(low: number, spread: number, cost: Cost, cycleMs: number): number {
  const refusedMs = (cost.refused / low) * 1000;
  const answersMs = ((cost.isQuick ? rules.quickAnswers : rules.manyAnswers) / low) * 1000;
  const rampForAnswersMs = Math.max(cost.isQuick ? 0 : refusedMs / rules.refusedPrice, answersMs);
  const maxRampMs = Math.max(rules.maxRampMs, 5 * cycleMs, answersMs);
  const length = Math.max(rules.minRampMs, Math.min(maxRampMs, rampForAnswersMs));
  if (cost.blockedMs === 0) return length;
  const rampForWaitCostMs = (cost.blockedMs / rules.blockedPrice) * Math.min(1, rules.narrowSpread / spread) ** 2;
  const maxBlockedMs = Math.max(rules.maxBlockedMs, cost.blockedMs / rules.longBlockedPrice);
  return Math.max(length, Math.min(maxBlockedMs, rampForWaitCostMs));
}

/**
 * Returns the burst that a target seems to allow, in ms of its limit. It is the shortest burst at first. It doubles when ramps begin above the limit
 * again and again, because a larger burst hides that they do.
 */
export function burstMs(earlyRamps: number): number {
  return Math.min(rules.maxBurstMs, rules.minBurstMs * 2 ** Math.max(0, earlyRamps - 1));
}

/**
 * Returns the limit, per second, of a target whose burst was full when the ramp began and is used up now. It is the rate above which the ramp sent as
 * many requests as the burst holds. A Retry-After leaves time to fill the burst. The limit is found by halving, between half the first rate of the
 * ramp and the last.
 */
export function limitOnRamp(state: LearnedRate, earlyRamps: number): number {
  const untilMs = Math.max(state.rampedMs / 2, state.rampedMs - rules.behindMs);
  let low = state.from / 2;
  let high = rateOn(state, untilMs);
  for (let round = 0; round < 20; round++) {
    const limit = (low + high) / 2;
    if (countSentAbove(limit, state, untilMs) > (limit * burstMs(earlyRamps)) / 1000) low = limit;
    else high = limit;
  }
  return low;
}

/** Returns the next `earlyRamps`: one more if the ramp began above the limit, one fewer after a whole ramp, 0 after a fall. */
export function nextEarlyRamps(state: LearnedRate, earlyRamps: number): number {
  const { from, rampedMs, rampMs } = state;
  const limit = limitOnRamp(state, earlyRamps);
  if (limit < from * rules.fallenShare) return 0;
  if (limit < from * (1 - rules.surelyAboveShare)) return earlyRamps + 1;
  return rampedMs > rampMs ? Math.max(0, earlyRamps - 1) : earlyRamps;
}

/**
 * A straight line from one rate (per second) to another in `rampMs`, then an ever steeper climb. The rate grows by `climbShare` in `climbMs`, and by
 * 8 times that share in twice this time.
 */
type RampLine = { from: number; to: number; rampMs: number; climbMs: number };

/** Returns the rate after this much of the ramp. */
export function rateOn({ from, to, rampMs, climbMs }: RampLine, afterMs: number): number {
  if (afterMs < rampMs) return from + (to - from) * (afterMs / rampMs);
  return Math.min(rules.maxPerSecond, to * (1 + rules.climbShare * ((afterMs - rampMs) / climbMs) ** 3));
}

/** Returns the mean rate of the last `ms`, per second. Before the ramp the rate counts as 0. */
export function meanOnRamp(line: RampLine & { rampedMs: number }, ms: number): number {
  const from = Math.max(0, line.rampedMs - ms);
  return ((line.rampedMs - from) / Math.max(1, ms)) * meanBetween(line, from, line.rampedMs, (rate) => rate);
}

/** Returns the number of requests that the ramp sends above a limit until `untilMs`. */
function countSentAbove(limit: number, line: RampLine, untilMs: number): number {
  return meanBetween(line, 0, untilMs, (rate) => Math.max(0, rate - limit)) * (untilMs / 1000);
}

function meanBetween(line: RampLine, fromMs: number, untilMs: number, valueAt: (rate: number) => number): number {
  const parts = 100;
  let sum = 0;
  for (let part = 0; part < parts; part++)
    sum += valueAt(rateOn(line, fromMs + ((part + 0.5) / parts) * (untilMs - fromMs)));
  return sum / parts;
}
