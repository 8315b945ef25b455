import type { LearnedRate } from './learned-rate.ts';
import { rateOn, sentAbove } from './ramp-line.ts';
import { rateRules as rules } from './rate-rules.ts';

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

/** The next `early`: one more after a ramp that began above the limit, one less after one that came later than its burst allows. */
export function nextEarly(state: LearnedRate): number {
  const { early, from, rampedMs, rampMs } = state;
  const limit = limitOnRamp(state, early);
  if (limit < from * rules.fallen) return 0;
  if (limit < from * (1 - rules.surelyAbove)) return early + 1;
  const isLate = rampedMs > Math.max(rampMs, rules.burstsInRamp * burstMs(early));
  return isLate ? Math.max(0, early - 1) : early;
}
