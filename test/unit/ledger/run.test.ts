import { describe, expect, test } from 'vitest';
import { findRunId, newRunId, sumActiveMs } from '../../../src/ledger/run.ts';
import type { RedisClient } from '../../../src/redis/client.ts';

describe('run id', () => {
  const all = [
    '20261121-0900-abcd',
    '20261120-1549-k7qd',
    '20261120-1550-abzz',
    '20261119-1550-abyy',
    '20261121-0900-abcd-2',
  ];
  const redis = { zrevrange: async () => all } as unknown as RedisClient;

  test('a new id says when it was made, to the minute, and ends with four letters or digits', () => {
    const made = Date.UTC(2026, 10, 20, 15, 49, 59);
    expect(newRunId(made)).toMatch(/^20261120-1549-[a-hj-kmnp-z2-9]{4}$/);
    expect(new Set(Array.from({ length: 50 }, () => newRunId(made))).size).toBeGreaterThan(45);
  });

  test.each([
    ['its id', '20261120-1549-k7qd', '20261120-1549-k7qd'],
    ['its id, though that of another begins like it', '20261121-0900-abcd', '20261121-0900-abcd'],
    ['the end of it', 'k7qd', '20261120-1549-k7qd'],
    ['the beginning of it', '20261119', '20261119-1550-abyy'],
  ])('a run goes by %s', async (_, text, id) => {
    expect(await findRunId(redis, text)).toBe(id);
  });

  test.each([
    ['nothing', '', 'no run is called ""'],
    ['what no run has', 'nope', 'no run is called "nope"'],
    ['the midst of one', '1549', 'no run is called "1549"'],
    [
      'what several have',
      '2026',
      '"2026" fits 5 runs, among them 20261121-0900-abcd, 20261120-1549-k7qd, 20261120-1550-abzz',
    ],
  ])('a run does not go by %s', async (_, text, message) => {
    await expect(findRunId(redis, text)).rejects.toMatchObject({
      code: 'USAGE',
      message,
      next: 'expunge runs lists them',
    });
  });
});

test('the deleting time goes on while somebody reports at least every ten seconds', () => {
  const run = { activeMs: 1_000, activeUntil: 50_000 };
  expect([49_000, 50_001, 60_000, 60_001].map((now) => sumActiveMs(run, now))).toEqual([1_000, 1_001, 11_000, 1_000]);
  expect(sumActiveMs({ activeMs: 1_000, activeUntil: 0 }, 5_000)).toBe(1_000);
});
