import type { Sums } from '../../src/limiter/learning/sums.ts';

/** What processes report between two updates in which nothing happened but what a test names; all answers are to permits of this epoch. */
export function sums(seen: Partial<Sums> & { now: number }): Sums {
  const { accepted = 0, refused = 0, trouble = 0 } = seen;
  return {
    blockedMs: 0,
    holdUntil: 0,
    accepted,
    refused,
    trouble,
    currentAccepted: accepted,
    currentRefused: refused,
    currentTrouble: trouble,
    sent: accepted + refused + trouble,
    latencies: 0,
    latencySum: 0,
    starved: 0,
    busy: 0,
    reports: 1,
    lost: 0,
    recall: 0,
    most: 64,
    ceiling: 0,
    released: 0,
    ...seen,
  };
}
