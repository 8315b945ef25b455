import { burstMs } from './burst.ts';
import { type LearnedRate, step } from './learned-rate.ts';
import { rateRules as rules } from './rate-rules.ts';

/** A rate that is accepted and one that was refused, a second. */
export type Bounds = { low: number; high: number };

/** What a refusal cost: refused answers, and how long the target told everybody to wait. */
export type Cost = { refused: number; blockedMs: number };

/**
 * Settles on new bounds: a step to just under `low`, from where the rate creeps up again, past `high`. What the refusal
 * that led here cost decides how slowly, because the next one will cost about as much.
 */
export function startRamp(state: LearnedRate, bounds: Bounds, cost: Cost, fromMs: number): LearnedRate {
  const low = Math.max(bounds.low, rules.leastPerSecond);
  const high = Math.max(bounds.high, low);
  const line =
    cost.blockedMs > 0 ? tightLine(low, high) : { from: low * (1 - rules.under), to: high * (1 + rules.over) };
  const fellAtMs = isFall(state, low) ? fromMs : state.fellAtMs;
  const sinceFallMs = fellAtMs === 0 ? Number.POSITIVE_INFINITY : fromMs - fellAtMs;
  const rampMs = rampLength(low, high / low - 1, cost, burstMs(state.early), sinceFallMs);
  const climbMs = cost.blockedMs > 0 && sinceFallMs < rules.backMs ? rules.backClimbMs : rules.climbMs;
  return step({ ...state, ...line, low, high, rampMs, climbMs, rampedMs: 0, fellAtMs }, line.from, 'ramp', fromMs);
}

/** Whether a limit that was known well is much lower now. */
function isFall({ low, high }: Bounds, next: number): boolean {
  return high < low * rules.knownWell && next < low * rules.fallen;
}

/** After a Retry-After the target's burst is full again, and the next refusal is dear: no need to go far from the bounds. */
function tightLine(low: number, high: number): { from: number; to: number } {
  const room = Math.max(high - low, low * rules.tightOver);
  return { from: low - Math.min(low * rules.under, room * rules.tightUnder), to: low + room };
}

/**
 * So long that the refusal at its end costs no more than its price. Where that is a wait, bounds that are far apart are looked
 * into sooner, because a long way under the limit costs more than a wait; so is a limit that fell not long ago, because it may come back.
 * And a burst must have time to be used up.
 */
function rampLength(low: number, spread: number, cost: Cost, burstMs: number, sinceFallMs: number): number {
  const refusedMs = (cost.refused / low) * 1000;
  const forAnswers = Math.max(refusedMs / rules.refusedPrice, (rules.manyAnswers / low) * 1000);
  const length = Math.max(rules.shortestMs, Math.min(rules.longestMs, forAnswers));
  if (cost.blockedMs === 0) return length;
  const forWait = (cost.blockedMs / rules.blockedPrice) * Math.min(1, rules.narrow / spread) ** 2;
  const soon = Math.min(rules.longestBlockedMs, forWait, rules.backShare * sinceFallMs);
  return Math.max(length, burstMs * rules.burstsInRamp, soon);
}
