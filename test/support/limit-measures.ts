import type { Simulated } from './limit-simulator.ts';

const tenths = (second: number) => Math.round(second * 10);

function sum(counts: number[], fromS: number, untilS: number): number {
  let total = 0;
  for (let index = tenths(fromS); index < Math.min(counts.length, tenths(untilS)); index++) total += counts[index]!;
  return total;
}

/** Accepted requests as a share of what the limit allowed, from second to second. */
export function usedShare(run: Simulated, fromS: number, untilS: number): number {
  return sum(run.accepted, fromS, untilS) / sum(run.limit, fromS, untilS);
}

/** Refused answers as a share of all. */
export function refusedShare(run: Simulated, fromS: number, untilS: number): number {
  const refused = sum(run.refused, fromS, untilS);
  return refused / Math.max(1, refused + sum(run.accepted, fromS, untilS));
}

export function acceptedPerSecond(run: Simulated, fromS: number, untilS: number): number {
  return sum(run.accepted, fromS, untilS) / (untilS - fromS);
}

export function refusedCount(run: Simulated, fromS: number, untilS: number): number {
  return sum(run.refused, fromS, untilS);
}

export function meanInFlight(run: Simulated, fromS: number, untilS: number): number {
  return sum(run.inFlight, fromS, untilS) / (tenths(untilS) - tenths(fromS));
}

/** Seconds from `fromS` until three seconds in a row used 95 % of the limit with at most 2 % refused. */
export function settledAfter(run: Simulated, fromS: number, untilS = run.limit.length / 10): number {
  for (let s = fromS; s + 3 <= untilS; s += 0.1)
    if (usedShare(run, s, s + 3) >= 0.95 && refusedShare(run, s, s + 3) <= 0.02) return s + 3 - fromS;
  return Number.POSITIVE_INFINITY;
}
