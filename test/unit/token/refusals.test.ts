import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterQuietEnd, afterRefusal, isHopeless, noPast, type RefusedToken } from '../../../src/token/refusals.ts';

const hour = 3_600_000;

function isHopelessAfter(...refusals: Partial<RefusedToken>[]): boolean {
  const streak = refusals.reduce<typeof noPast>(
    (before, refusal) => afterRefusal(before, { ageMs: 100, lifeMs: hour, isBeingReplaced: false, ...refusal }),
    noPast,
  );
  return isHopeless(streak);
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
    expect(isHopeless(afterRefusal(afterQuietEnd(afterRefusal(noPast, refusal)), refusal))).toBe(false);
  });
});

describe('how long tokens live that do not say so', () => {
  const refusal = { ageMs: 2_000, lifeMs: noPast.lifeMs, isBeingReplaced: false };

  it('is learned from one that is refused, and never less than a second', () => {
    expect(afterRefusal(noPast, refusal).lifeMs).toBe(2_000);
    expect(afterRefusal(noPast, { ...refusal, ageMs: 3 }).lifeMs).toBe(1_000);
  });

  it('is tried out a little longer by each that nobody refused, up to five minutes', () => {
    const learned = afterRefusal(noPast, refusal);
    expect(afterQuietEnd(learned).lifeMs).toBe(3_000);
    expect(Array.from({ length: 50 }).reduce(afterQuietEnd, learned)).toEqual(noPast);
  });
});
