import { rateRules as rules } from './rate-rules.ts';

/** A straight line from one rate (a second) to another in `rampMs`, then a climb that grows steeper: `climb` in `climbMs`, 8 times that in twice this time. */
export type RampLine = { from: number; to: number; rampMs: number; climbMs: number };

/** The rate after so much of the ramp. */
export function rateOn({ from, to, rampMs, climbMs }: RampLine, afterMs: number): number {
  if (afterMs < rampMs) return from + (to - from) * (afterMs / rampMs);
  return Math.min(rules.mostPerSecond, to * (1 + rules.climb * ((afterMs - rampMs) / climbMs) ** 3));
}

/** How many requests the ramp sends above a limit until then. */
export function sentAbove(limit: number, line: RampLine, untilMs: number): number {
  const parts = 100;
  let rates = 0;
  for (let part = 0; part < parts; part++) rates += Math.max(0, rateOn(line, ((part + 0.5) / parts) * untilMs) - limit);
  return (rates / parts) * (untilMs / 1000);
}
