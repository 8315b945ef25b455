import { describe, test } from 'vitest';
import { measureWait, type RetryAfterWait } from '../../support/retry-after-wait.ts';

const seconds = 5;
const cases: readonly Omit<RetryAfterWait, 'seconds' | 'atEnd'>[] = [
  { workers: 4, form: 'seconds' },
  { workers: 4, form: 'imf-fixdate', clockOffMs: 600_000 },
  { workers: 4, form: 'rfc850', clockOffMs: -600_000 },
  { workers: 4, form: 'asctime' },
  { workers: 4, form: 'seconds', alsoForMs: 250 },
];

describe.concurrent('one 429 with a Retry-After to one of several processes', () => {
  test.for(cases)(
    'stops all of them at once and for as long as it says: %o',
    async (how, { expect, onTestFinished }) => {
      const seen = await measureWait({ ...how, seconds, atEnd: onTestFinished });
      console.log(seen.words);
      expect(seen.lastBeforeMs, seen.words).toBeLessThanOrEqual(300);
      expect(seen.firstAfterMs, seen.words).toBeGreaterThanOrEqual(seconds * 1_000 - 50);
      // A date has no fractions of a second, and answers that were on their way may come a little later than the first.
      expect(seen.firstAfterMs).toBeLessThan(how.form === 'seconds' ? 6_000 : 8_000);
      if (!('alsoForMs' in how)) expect(seen.refused).toBe(1);
    },
  );
});
