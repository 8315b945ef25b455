import { describe, test } from 'vitest';
import { measureBins } from '../../support/history-bins.ts';

const seeds = Array.from({ length: 20 }, (_, n) => n + 1);

describe('the bins of a history', () => {
  /**
   * @invariant true-bins: A bin of a history is within 2 % of what the server saw in that time. A bin that lasted a moment, or is not
   * completely recorded, has no rate.
   */
  test.for(seeds)(
    'show what the server saw, within 2 %, whatever happens to the run: %i',
    async (seed, { expect, onTestFinished }) => {
      const { points, errors, shifted, sent, words } = await measureBins({
        seed,
        phases: 6,
        atEnd: onTestFinished,
      });
      console.log(words);
      expect(
        points.reduce((sum, { requests }) => sum + requests, 0),
        words,
      ).toBe(sent);
      expect(
        points.every(({ from, to }) => from % 1_000 === 0 && to > from),
        words,
      ).toBe(true);
      expect(
        shifted.some(({ share }) => share > 0.02),
        words,
      ).toBe(true);
      expect(
        errors.filter(({ share }) => share > 0.02),
        words,
      ).toEqual([]);
    },
  );
});
