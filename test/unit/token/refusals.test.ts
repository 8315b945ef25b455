import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  afterRefusal,
  afterReplacement,
  noRefusals,
  parseLifeMs,
  type RefusedToken,
  refreshAfterMs,
  retryDelayMs,
  shouldGiveUp,
} from '../../../src/token/refusals.ts';

const hour = 3_600_000;

function isHopelessAfter(...refusals: Partial<RefusedToken>[]): boolean {
  const streak = refusals.reduce<typeof noRefusals>(
    (before, refusal) => afterRefusal(before, { ageMs: 100, lifeMs: hour, isBeingReplaced: false, ...refusal }),
    noRefusals,
  );
  return shouldGiveUp(streak);
}

describe('asking for more tokens is', () => {
  it.each([
    ['worth it after one early refusal', [{}], false],
    ['hopeless after two in a row', [{}, { ageMs: 59_000 }], true],
    ['worth it when the second had lived a minute', [{}, { ageMs: 60_000 }], false],
    ['worth it when the second had lived half its life', [{}, { ageMs: 1_000, lifeMs: 2_000 }], false],
    ['worth it when a newer one was under way', [{}, { isBeingReplaced: true }], false],
    ['hopeless when the second early one is not the next', [{}, { isBeingReplaced: true }, {}], true],
    [
      'worth it after nine that fell young, but late in their life',
      Array(9).fill({ ageMs: 1_200, lifeMs: 2_000 }),
      false,
    ],
    ['hopeless after ten of those', Array(10).fill({ ageMs: 1_200, lifeMs: 2_000 }), true],
  ] as [string, Partial<RefusedToken>[], boolean][])('%s', (_, refusals, hopeless) => {
    expect(isHopelessAfter(...refusals)).toBe(hopeless);
  });

  it('never hopeless where each token is refused at the end of its short life, while the next is on its way', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5_000 })), (ages) => {
        expect(isHopelessAfter(...ages.map((ageMs) => ({ ageMs, lifeMs: 2_000, isBeingReplaced: true })))).toBe(false);
      }),
    );
  });

  it('worth it again after a token that nobody refused', () => {
    const refusal = { ageMs: 100, lifeMs: hour, isBeingReplaced: false };
    expect(shouldGiveUp(afterRefusal(afterReplacement(afterRefusal(noRefusals, refusal)), refusal))).toBe(false);
  });
});

describe('how long tokens live that do not say so', () => {
  const refusal = { ageMs: 2_000, lifeMs: noRefusals.lifeMs, isBeingReplaced: false };

  it('is learned from one that is refused, and never less than a second', () => {
    expect(afterRefusal(noRefusals, refusal).lifeMs).toBe(2_000);
    expect(afterRefusal(noRefusals, { ...refusal, ageMs: 3 }).lifeMs).toBe(1_000);
  });

  it('is tried out a little longer by each that nobody refused, up to five minutes', () => {
    const learned = afterRefusal(noRefusals, refusal);
    expect(afterReplacement(learned).lifeMs).toBe(3_000);
    expect(Array.from({ length: 50 }).reduce(afterReplacement, learned)).toEqual(noRefusals);
  });
});

describe('token life', () => {
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
      expect(parseLifeMs(expiresIn)).toBe(ms);
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
      expect(parseLifeMs(expiresIn)).toBeNull();
    });

    it('is never anything but positive and at most a day', () => {
      fc.assert(
        fc.property(fc.anything(), (expiresIn) => {
          const ms = parseLifeMs(expiresIn);
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
          const ms = retryDelayMs(failures, null, chance);
          return ms >= 1_000 && ms <= 30_000;
        }),
      );
      expect(retryDelayMs(0, null, 1)).toBe(1_500);
      expect(retryDelayMs(3, null, 1)).toBe(5_000);
      expect(retryDelayMs(9, null, 1)).toBe(30_000);
    });

    it('waits as long as it was asked to, up to an hour', () => {
      expect([7_000, 0, 1e9].map((asked) => retryDelayMs(5, asked, 0.3))).toEqual([7_000, 1_000, 3_600_000]);
    });
  });
});
