import { expect, onTestFinished, test } from 'vitest';
import { lostIn, measureRedisAway } from '../support/redis-away.ts';

test.each([100, 5_000, 25_000, 120_000])('a Redis that is away for %i ms costs nothing but the time', async (ms) => {
  const { run, resumedAfterMs, ...seen } = await measureRedisAway({ verb: 'crew', ms, atEnd: onTestFinished });
  console.log(`Redis away for ${ms} ms: work goes on ${Math.round(resumedAfterMs)} ms after its return`, run.counts);
  expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false });
  expect(lostIn(run)).toBe(0);
  expect(resumedAfterMs).toBeLessThan(5_000);
});
