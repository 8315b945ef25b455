import type { Observation } from '../../src/limiter/learning/learned-rate.ts';

/** An observation in which nothing happened but what a test names. */
export function observation(seen: Partial<Observation> & { now: number }): Observation {
  return {
    blockedMs: 0,
    blockedUntilMs: 0,
    accepted: 0,
    refused: 0,
    currentAccepted: seen.accepted ?? 0,
    currentRefused: seen.refused ?? 0,
    sent: (seen.accepted ?? 0) + (seen.refused ?? 0),
    latency: { count: 0, sumMs: 0 },
    reports: 1,
    starved: 0,
    lost: 0,
    busy: 0,
    ...seen,
  };
}
