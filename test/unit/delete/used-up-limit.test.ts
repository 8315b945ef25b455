import { describe, expect, test } from 'vitest';
import { UsedUpLimit } from '../../../src/delete/used-up-limit.ts';

/** A limit that is used up from 10,000 to 70,000 ms, and the times at which accepted requests were sent. */
function acceptedAt(...sentMs: number[]): UsedUpLimit {
  const limit = new UsedUpLimit();
  limit.announce(10_000, 60_000);
  for (const ms of sentMs) limit.accepted(ms);
  return limit;
}

describe('the reset of a used-up limit', () => {
  test.each([
    ['of which nothing else is known', []],
    ['with requests that were sent before and answered later', [9_000, 10_000]],
    ['with requests after the reset, or shortly before, as it is rounded', [68_500, 70_000, 90_000]],
  ])('is a wait: one %s', (_, sentMs) => {
    expect(acceptedAt(...sentMs).announce(100_000, 60_000)).toBe(true);
  });

  test.each([[[10_001]], [[9_000, 68_499]]])('is none after requests were accepted before it: at %j', (sentMs) => {
    const limit = acceptedAt(...sentMs);
    expect([limit.isWatched, limit.announce(100_000, 60_000)]).toEqual([false, false]);
  });

  test('is counted from the first answer that said so, as later answers come while requests are in flight', () => {
    const limit = acceptedAt();
    limit.announce(30_000, 60_000);
    limit.accepted(20_000);
    expect(limit.announce(30_000, 60_000)).toBe(false);
  });

  test('is none if it is so short that rounding decides', () => {
    expect([new UsedUpLimit().announce(0, 1_500), new UsedUpLimit().announce(0, 1_501)]).toEqual([false, true]);
  });

  test('does not matter before any limit was used up', () => {
    const limit = new UsedUpLimit();
    expect(limit.isWatched).toBe(false);
    limit.announce(10_000, 60_000);
    expect(limit.isWatched).toBe(true);
  });
});
