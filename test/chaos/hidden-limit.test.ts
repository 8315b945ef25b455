import { describe, test } from 'vitest';
import { openFleet, passed, startFleet, startRun } from '../support/fleet.ts';
import { seeCapacity } from '../support/hidden-capacity.ts';
import { bucket, openHiddenLimit } from '../support/hidden-limit.ts';
import { until } from '../support/processes.ts';
import { percent, sharesOf, takenIn } from '../support/rate-measures.ts';
import { annotations, makeIds, openScene } from '../support/scene.ts';

describe.concurrent('a limit that nobody wrote down', () => {
  test('is found and nearly all used, with few refused', async ({ expect, onTestFinished }) => {
    const hidden = { perSecond: 300, retryAfter: null, workers: 1, seconds: 45, atEnd: onTestFinished };
    const { scene, startedMs } = await openHiddenLimit(hidden);
    const { arrivals } = scene.sandbox;
    const { used, refused } = await until(
      'a stretch of five seconds in which it is nearly all used',
      () => {
        const toMs = performance.now();
        if (toMs < startedMs + 8_000) return null;
        const shares = sharesOf(takenIn(arrivals, { fromMs: toMs - 5_000, toMs }), hidden.perSecond);
        return shares.used >= 0.9 && shares.refused <= 0.03 && shares;
      },
      40_000,
    );
    expect(used, percent(used)).toBeLessThanOrEqual(1.03);
    expect(refused, percent(refused)).toBeLessThanOrEqual(0.03);
  });

  test('is where the next run begins', async ({ expect, onTestFinished }) => {
    const rate = bucket({ perSecond: 300, retryAfter: null });
    const [first, second] = [makeIds('first', 3_000), makeIds('second', 1_500)];
    const objects = annotations([...first, ...second]);
    const scene = await openScene(onTestFinished, { objects, latencyMs: 10, faults: { rate } });
    await startFleet(onTestFinished, scene, first, { workers: 0 });
    await scene.runIs('completed', ({ state }) => state === 'completed', 60_000);
    const before = scene.sandbox.arrivals.atMs.length;
    await startRun(scene, second);
    const { atMs } = scene.sandbox.arrivals;
    const startedMs = await until('the second run begins', () => atMs[before]);
    await passed(startedMs, 1_000);
    // Who knows nothing begins at 20 a second, which is some 10 in this time.
    const { accepted } = takenIn(scene.sandbox.arrivals, { fromMs: startedMs, toMs: startedMs + 500 });
    expect(accepted).toBeGreaterThan(0.4 * 150);
  });

  test.for(['x-ratelimit-epoch-ms'] as const)(
    'is respected before anything is refused where the server tells of it: %s',
    async (headers, { expect, onTestFinished }) => {
      const rate = { perSecond: 60, windowMs: 5_000, headers };
      const { scene } = await openFleet(onTestFinished, { ids: 700, workers: 1, sandbox: { faults: { rate } } });
      await scene.runIs('completed', ({ state }) => state === 'completed', 60_000);
      const { byStatus } = scene.sandbox.counts;
      expect(byStatus.get(429) ?? 0).toBeLessThanOrEqual(5);
    },
  );
});

describe.concurrent('a server that serves so many at once and lets others wait', () => {
  test('has about as many in the house, and no crowd', async ({ expect, onTestFinished }) => {
    const { mean, words } = await seeCapacity({ serviceMs: 50, workers: 1, atEnd: onTestFinished }, 7, 5);
    expect(mean, words).toBeGreaterThan(10);
    expect(mean, words).toBeLessThan(35);
  });
});
