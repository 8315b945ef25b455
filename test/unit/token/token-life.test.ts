import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { askAgainAfterMs, lifeMsOf, refreshAfterMs } from '../../../src/token/token-life.ts';

const random = fc.double({ min: 0, max: 1, noNaN: true });

describe('the life of a token', () => {
  it.each([
    [3_600, 3_600_000],
    [2, 2_000],
    [0.5, 500],
    ['3600', 3_600_000],
    ['1.5', 1_500],
    [1e12, 86_400_000],
    [Number.POSITIVE_INFINITY, 86_400_000],
    ['999999999999', 86_400_000],
  ])('of expires_in %j is %i ms', (expiresIn, ms) => {
    expect(lifeMsOf(expiresIn)).toBe(ms);
  });

  it.each([
    [undefined],
    [null],
    [0],
    ['0'],
    [-1],
    ['-60'],
    [Number.NaN],
    ['an hour'],
    ['1e9'],
    [''],
    [true],
    [{}],
    [[60]],
  ])('is unknown where expires_in is %j', (expiresIn) => {
    expect(lifeMsOf(expiresIn)).toBeNull();
  });

  it('is never anything but positive and at most a day', () => {
    fc.assert(
      fc.property(fc.anything(), (expiresIn) => {
        const ms = lifeMsOf(expiresIn);
        return ms === null || (ms > 0 && ms <= 86_400_000);
      }),
    );
  });
});

describe('a token is replaced', () => {
  it.each([
    [3_600_000, 0.5, 2_880_000],
    [3_600_000, 0, 2_592_000],
    [3_600_000, 1, 3_168_000],
    [2_000, 0.5, 1_600],
    [1_000, 0.5, 1_000],
    [1, 0.5, 1_000],
  ])('of %i ms at a chance of %d after %i ms', (lifeMs, chance, ms) => {
    expect(refreshAfterMs(lifeMs, chance)).toBeCloseTo(ms, 6);
  });

  it('before its life is over, if that is longer than a second', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_200, max: 86_400_000 }), random, (lifeMs, chance) => {
        const ms = refreshAfterMs(lifeMs, chance);
        return ms >= 1_000 && ms < lifeMs;
      }),
    );
  });
});

describe('asking again after a failure', () => {
  it('waits from a second to 30 s, more often longer the more fail', () => {
    fc.assert(
      fc.property(fc.nat(10_000), random, (failures, chance) => {
        const ms = askAgainAfterMs(failures, null, chance);
        return ms >= 1_000 && ms <= 30_000;
      }),
    );
    expect(askAgainAfterMs(0, null, 1)).toBe(1_500);
    expect(askAgainAfterMs(3, null, 1)).toBe(5_000);
    expect(askAgainAfterMs(9, null, 1)).toBe(30_000);
  });

  it('waits as long as it was asked to, up to an hour', () => {
    expect([7_000, 0, 1e9].map((asked) => askAgainAfterMs(5, asked, 0.3))).toEqual([7_000, 1_000, 3_600_000]);
  });
});
