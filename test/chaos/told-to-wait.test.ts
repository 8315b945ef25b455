import { describe, test } from 'vitest';
import { openFleet } from '../support/fleet.ts';
import { measureWait } from '../support/retry-after-wait.ts';

describe.concurrent('one 429 with a Retry-After to one of several processes', () => {
  test.for([
    { workers: 4, form: 'seconds' },
    { workers: 2, form: 'asctime', clockOffMs: -600_000 },
    { workers: 2, form: 'seconds', alsoForMs: 250 },
  ] as const)('stops all of them at once and for as long as it says: %o', async (how, { expect, onTestFinished }) => {
    const seen = await measureWait({ ...how, seconds: 3, atEnd: onTestFinished });
    expect(seen.lastBeforeMs, seen.words).toBeLessThanOrEqual(300);
    expect(seen.firstAfterMs, seen.words).toBeGreaterThanOrEqual(2_950);
    // A date has no fractions of a second, and answers that were on their way may come a little later than the first.
    expect(seen.firstAfterMs, seen.words).toBeLessThan(6_000);
    if (!('alsoForMs' in how)) expect(seen.refused).toBe(1);
  });

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
