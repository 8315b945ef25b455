import { describe, expect, it, test } from 'vitest';
import { connectionsOf, countWorkers, type WorkerFacts } from '../../../src/worker/count-workers.ts';

const facts: WorkerFacts = {
  asked: null,
  cores: 8,
  freeBytes: 2 ** 33,
  ids: 1_000_000,
  perSecond: null,
  maxConcurrency: 64,
};

describe('a run has', () => {
  it.each<[what: string, known: Partial<WorkerFacts>, workers: number, reason: string]>([
    ['four processes where nothing is in the way', {}, 4, 'at most, without --workers'],
    [
      'one for each core of a small machine but one, which Redis needs',
      { cores: 3 },
      2,
      '3 cores, one of them for Redis and everything else',
    ],
    ['one on two cores', { cores: 2 }, 1, '2 cores, one of them for Redis and everything else'],
    ['one on a single core', { cores: 1 }, 1, '1 core, one of them for Redis and everything else'],
    ['one where there is no memory for another', { freeBytes: 399 * 2 ** 20 }, 1, 'memory for no more'],
    ['two where there is for one more', { freeBytes: 400 * 2 ** 20 }, 2, 'memory for no more'],
    ['one for a list that is deleted in seconds', { ids: 199_999 }, 1, '199,999 ids keep no more busy'],
    ['two for a list that keeps two busy', { ids: 200_000 }, 2, '200,000 ids keep no more busy'],
    ['one for an empty list', { ids: 0 }, 1, '0 ids keep no more busy'],
    ['one for a rate that one process sends easily', { perSecond: 2_000 }, 1, 'enough for 2,000/s'],
    ['two above it', { perSecond: 2_001 }, 2, 'enough for 2,001/s'],
    ['one for the slowest rate', { perSecond: 0.01 }, 1, 'enough for 36/h'],
    ['four for a high rate', { perSecond: 1e6 }, 4, 'at most, without --workers'],
    ['as many as have eight requests each', { maxConcurrency: 31 }, 3, '--max-concurrency 31'],
    ['one for a few requests at once', { maxConcurrency: 3 }, 1, '--max-concurrency 3'],
    ['as many as were asked for, whatever else is known', { asked: 6, cores: 1, ids: 1, perSecond: 1 }, 6, '--workers'],
    ['one if that was asked for', { asked: 1 }, 1, '--workers'],
    ['no more than requests at once', { asked: 6, maxConcurrency: 2 }, 2, '--max-concurrency 2 is one request each'],
  ])('%s', (_, known, workers, reason) => {
    expect(countWorkers({ ...facts, ...known })).toEqual({ workers, reason });
  });
});

test.each([
  [64, 4, [16, 16, 16, 16]],
  [64, 3, [22, 21, 21]],
  [3, 3, [1, 1, 1]],
  [5, 1, [5]],
])('%i requests at once are divided between %i processes', (maxConcurrency, workers, shares) => {
  expect(shares.map((_, n) => connectionsOf(n + 1, workers, maxConcurrency))).toEqual(shares);
});
