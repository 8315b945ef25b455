import { describe, expect, onTestFinished, test } from 'vitest';
import { readTargetState } from '../../../src/limiter/read-target.ts';
import { openFleet, startFleet, startRun } from '../../support/fleet.ts';
import { openHarness } from '../../support/harness.ts';
import { measureCapacity } from '../../support/hidden-capacity.ts';
import { bucket, measureChanges, measureHiddenLimit } from '../../support/hidden-limit.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

describe.concurrent('a limit', () => {
  test('is where the next run begins', async ({ expect, onTestFinished }) => {
    const rate = bucket({ perSecond: 300, retryAfter: null });
    const [first, second] = [makeIds('first', 3_000), makeIds('second', 1_500)];
    const objects = annotations([...first, ...second]);
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 10, faults: { rate } });
    await startFleet(onTestFinished, harness, first, { workers: 0 });
    await harness.runIs('completed', ({ state }) => state === 'completed');
    const before = harness.sandbox.arrivals.atMs.length;
    await startRun(harness, second);
    await until('the second run begins', () => harness.sandbox.arrivals.atMs[before]);
    const known = await readTargetState(harness.redis, harness.target.fp);
    expect(known!.rate).toBeGreaterThan(0.4 * 300); // who knows nothing begins at 20 a second
  });

  test.for(['x-ratelimit-epoch-ms'] as const)(
    'is respected before anything is refused where the server tells of it: %s',
    async (headers, { expect, onTestFinished }) => {
      const rate = { perSecond: 60, windowMs: 5_000, headers };
      const { harness } = await openFleet(onTestFinished, { ids: 700, workers: 1, sandbox: { faults: { rate } } });
      await harness.runIs('completed', ({ state }) => state === 'completed');
      const { byStatus } = harness.sandbox.counts;
      expect(byStatus.get(429) ?? 0).toBeLessThanOrEqual(5);
    },
  );
});

const limits = [300, 3_000];
const forms = [null, 'seconds', 'imf-fixdate'] as const;
const fleets = [1, 4];
const cases = limits.flatMap((perSecond) =>
  forms.flatMap((retryAfter) => fleets.map((workers) => ({ perSecond, retryAfter, workers }))),
);

describe('a limit that nobody wrote down, for minutes', () => {
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

const capacities = [10, 100].flatMap((serviceMs) => [1, 4].map((workers) => ({ serviceMs, workers })));

test.each(capacities)(
  'a server that serves 20 at once, $serviceMs ms each, has 15 to 25 in the house with $workers workers',
  async (hidden) => {
    const { mean, words } = await measureCapacity({ ...hidden, atEnd: onTestFinished }, 20, 30);
    console.log(words);
    expect(mean).toBeGreaterThanOrEqual(15);
    expect(mean).toBeLessThanOrEqual(25);
  },
);
