import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseOrdinals } from '../../../src/lookup/sample-deleted.ts';

describe('a sample', () => {
  const size = fc.nat({ max: 60 });
  const draws = fc.infiniteStream(fc.double({ min: 0, max: 0.999_999, noNaN: true }));

  it('has as many different ids as were asked for, or all there are, in order', () => {
    fc.assert(
      fc.property(size, size, draws, (of, wanted, stream) => {
        const chosen = chooseOrdinals(of, wanted, () => stream.next().value!);
        expect(chosen).toHaveLength(Math.min(of, wanted));
        expect(new Set(chosen).size).toBe(chosen.length);
        expect(chosen).toEqual([...chosen].sort((a, b) => a - b));
        for (const one of chosen) expect(one >= 0 && one < of).toBe(true);
      }),
    );
  });

  it('takes each id as often as any other', () => {
    const taken = Array.from({ length: 20 }, () => 0);
    const rounds = 20_000;
    let seed = 1;
    const random = () => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed / 2 ** 32;
    };
    for (let i = 0; i < rounds; i++) for (const one of chooseOrdinals(20, 5, random)) taken[one]! += 1;
    for (const times of taken) expect(Math.abs(times - rounds / 4)).toBeLessThan(300); // 5 standard deviations
  });

  it('of ten million ids needs memory and time for the sample alone', () => {
    let drawn = 0;
    const random = () => {
      drawn += 1;
      return Math.random();
    };
    expect(chooseOrdinals(10_000_000, 200, random)).toHaveLength(200);
    expect(drawn).toBe(200);
  });
});
