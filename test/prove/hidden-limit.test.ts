import { describe, expect, onTestFinished, test } from 'vitest';
import { measureChanges, measureHiddenLimit } from '../support/hidden-limit.ts';

const limits = [300, 3_000];
const forms = [null, 'seconds', 'imf-fixdate'] as const;
const fleets = [1, 4];
const cases = limits.flatMap((perSecond) =>
  forms.flatMap((retryAfter) => fleets.map((workers) => ({ perSecond, retryAfter, workers }))),
);

describe('a limit that nobody wrote down', () => {
  test.each(cases)(
    'of $perSecond/s is used to 98 %, with 0.5 % refused: Retry-After $retryAfter, $workers processes',
    async (hidden) => {
      // One look for more costs everybody a second or two of Retry-After: it needs minutes to tell what share that is.
      const watch = hidden.retryAfter === null ? 60 : 180;
      const fleet = { ...hidden, seconds: 35 + watch, atEnd: onTestFinished };
      const { used, refused, words } = await measureHiddenLimit(fleet, 30, watch);
      console.log(words);
      expect(used).toBeGreaterThanOrEqual(0.98);
      expect(refused).toBeLessThanOrEqual(0.005);
    },
  );

  test.each(cases)(
    'of $perSecond/s that halves and doubles is followed: Retry-After $retryAfter, $workers processes',
    async (hidden) => {
      const { halved, doubled, words } = await measureChanges(
        { ...hidden, seconds: 95, atEnd: onTestFinished },
        30,
        30,
      );
      console.log(words);
      expect(halved ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(20);
      expect(doubled ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(20);
    },
  );
});
