import { expect, onTestFinished, test } from 'vitest';
import { measureWait } from '../support/retry-after-wait.ts';

test.each([
  { form: 'seconds' },
  { form: 'imf-fixdate', clockOffMs: 600_000 },
  { form: 'rfc850', clockOffMs: -600_000 },
  { form: 'asctime' },
  { form: 'seconds', alsoForMs: 250 },
] as const)('one 429 with a Retry-After of 5 s to one of four processes stops all of them: %o', async (how) => {
  const { lastBeforeMs, firstAfterMs, words } = await measureWait({
    ...{ ...how, seconds: 5, workers: 4 },
    atEnd: onTestFinished,
  });
  console.log(words);
  expect(lastBeforeMs).toBeLessThanOrEqual(300);
  expect(firstAfterMs).toBeGreaterThanOrEqual(4_950);
  // A date has whole seconds, as has the Date it is compared with: up to two seconds more.
  expect(firstAfterMs).toBeLessThan(how.form === 'seconds' ? 6_000 : 8_000);
});
