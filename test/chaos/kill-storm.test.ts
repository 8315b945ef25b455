import { describe, test } from 'vitest';
import { killStorm, stormWords } from '../support/kill-storm.ts';

const seed = 20_261_120;

/** Five kills, each after another tenth of the list. */
const killNow = (kills: number, _sinceMs: number, settledSince: number) => kills < 5 && settledSince >= 400;

describe.concurrent('workers that are killed in the middle of chunks, and an API that fails in every way', () => {
  test('lose no id and say nothing false', async ({ expect, onTestFinished }) => {
    const result = await killStorm({ ids: 4_000, seed, killNow, latencyMs: 20, atEnd: onTestFinished });
    expect(result.broken, stormWords(result, seed)).toBeNull();
    expect(result.run.state).toBe('completed');
    expect(result.kills).toBe(5);
  });

  test('would call deleted objects absent if they ignored the marks', async ({ expect, onTestFinished }) => {
    const result = await killStorm({ ids: 4_000, seed, killNow, latencyMs: 20, careless: true, atEnd: onTestFinished });
    expect(result.broken, stormWords(result, seed)).toMatch(/^"absent was never deleted by us" is broken/);
  });
});
