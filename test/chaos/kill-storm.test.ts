import { describe, test } from 'vitest';
import { describeStorm, killStorm, type Sofar } from '../support/kill-storm.ts';
import { takeoverMs } from '../support/takeover.ts';

const seed = 20_261_120;

/** Kills as long as chunks go on; those of the dead take 10 to 14 s until they do, so there are two waves of them. */
const killNow = ({ kills, elapsedMs, settledSince }: Sofar) => kills < 5 && elapsedMs < 16_000 && settledSince >= 200;
const killSoon = ({ kills, elapsedMs, settledSince }: Sofar) => kills < 4 && elapsedMs < 10_000 && settledSince >= 200;

describe.concurrent('workers that are killed in the middle of chunks, and an API that fails in every way', () => {
  test('lose no id and say nothing false', async ({ expect, onTestFinished }) => {
    const result = await killStorm({ ids: 4_000, seed, killNow, latencyMs: 20, atEnd: onTestFinished });
    expect(result.broken, describeStorm(result, seed)).toBeNull();
    expect(result.run.state).toBe('completed');
    expect(result.kills).toBeGreaterThanOrEqual(2);
  });

  test('would call deleted objects absent if they ignored the marks', async ({ expect, onTestFinished }) => {
    // A kill that meets a worker between two chunks shows nothing: then the next storm has to.
    const found: (string | null)[] = [];
    for (let n = 0; n < 4 && !found.some(Boolean); n++) {
      const storm = { ids: 6_000, seed: seed + n, killNow: killSoon, latencyMs: 20, careless: true };
      found.push((await killStorm({ ...storm, atEnd: onTestFinished })).broken);
    }
    expect(found.at(-1)).toMatch(/^"absent was never deleted by us" is broken/);
  });

  test('have their chunks taken over within 15 s', async ({ expect, onTestFinished }) => {
    expect(await takeoverMs(onTestFinished, 20)).toBeLessThan(15_000);
  });
});
