import type { Work } from '../../../src/model/forecast.ts';

/** So many requests, which nothing bounds. */
export function unboundWork(requests: number): Work {
  return {
    requests,
    rate: null,
    limit: null,
    learned: null,
    quotas: [],
    window: null,
    startsAt: 0,
    stopAt: 0,
    maxActiveMs: 0,
  };
}
