import { describe, expect, onTestFinished, test } from 'vitest';
import { describeStorm, killStorm, type Sofar } from '../support/kill-storm.ts';

/** One kill a second, however little was settled since. */
const killNow = ({ sinceMs }: Sofar) => sinceMs >= 1_000;

describe('100,000 ids, a kill -9 every second, and an API that fails in every way', () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])('loses no id and says nothing false with seed %i', async (seed) => {
    const result = await storm(seed, 100_000);
    expect(result.broken).toBeNull();
    expect(result.run.state).toBe('completed');
    expect(result.kills).toBeGreaterThanOrEqual(50);
  });

  test('would call deleted objects absent if the marks were ignored', async () => {
    expect((await storm(1, 20_000, true)).broken).toMatch(/^"absent was never deleted by us" is broken/);
  });
});

async function storm(seed: number, ids: number, careless = false) {
  const result = await killStorm({ ids, seed, killNow, latencyMs: 20, careless, atEnd: onTestFinished });
  console.log(describeStorm(result, seed));
  return result;
}
