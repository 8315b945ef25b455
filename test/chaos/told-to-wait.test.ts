import { describe, test } from 'vitest';
import { openFleet } from '../support/fleet.ts';
import { measureWait, type RetryAfterWait } from '../support/retry-after-wait.ts';
import { isFull, sized } from '../support/size.ts';

const seconds = sized(3, 5);
const cases: readonly Omit<RetryAfterWait, 'seconds' | 'atEnd'>[] = sized(
  [
    { workers: 4, form: 'seconds' },
    { workers: 2, form: 'asctime', clockOffMs: -600_000 },
    { workers: 2, form: 'seconds', alsoForMs: 250 },
  ],
  [
    { workers: 4, form: 'seconds' },
    { workers: 4, form: 'imf-fixdate', clockOffMs: 600_000 },
    { workers: 4, form: 'rfc850', clockOffMs: -600_000 },
    { workers: 4, form: 'asctime' },
    { workers: 4, form: 'seconds', alsoForMs: 250 },
  ],
);

describe.concurrent('one 429 with a Retry-After to one of several processes', () => {
  test.for(cases)(
    'stops all of them at once and for as long as it says: %o',
    async (how, { expect, onTestFinished }) => {
      const seen = await measureWait({ ...how, seconds, atEnd: onTestFinished });
      console.log(seen.words);
      // In short the machine is not ours alone: what had left may be a second on its way.
      expect(seen.lastBeforeMs, seen.words).toBeLessThanOrEqual(sized(1_000, 300));
      expect(seen.firstAfterMs, seen.words).toBeGreaterThanOrEqual(seconds * 1_000 - 50);
      // A date has no fractions of a second, and answers that were on their way may come a little later than the first.
      if (isFull) expect(seen.firstAfterMs).toBeLessThan(how.form === 'seconds' ? 6_000 : 8_000);
      if (!('alsoForMs' in how)) expect(seen.refused).toBe(1);
    },
  );

  test('pauses the run, with the reason, where it asks for more than an hour', async ({ expect, onTestFinished }) => {
    const faults = { 'status-429-seconds': 1, retryAfterSeconds: 7_200 };
    const { harness } = await openFleet(onTestFinished, { ids: 1_000, workers: 1, sandbox: { faults } });
    const run = await harness.runIs('paused', ({ state }) => state === 'paused');
    expect(run).toMatchObject({
      by: 'guard',
      reason: 'the server answered 429 and sent Retry-After 7200',
      attempts: 0,
    });
    expect(harness.sandbox.arrivals.atMs.length).toBeLessThan(50);
  });
});
