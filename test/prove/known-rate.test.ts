import { describe, expect, onTestFinished, test } from 'vitest';
import { measureKnownRate } from '../support/known-rate.ts';

describe('a known rate, kept by four processes for a minute', () => {
  test.each([
    ['worker --rate', 1_000],
    ['worker --rate', 50],
    ['run --detach --rate', 1_000],
    ['run --detach --rate', 50],
  ] as const)('holds in every second and is used: %s %i/s', async (way, perSecond) => {
    const seen = await measureKnownRate({ perSecond, way, workers: 4, atEnd: onTestFinished }, 60);
    console.log(seen.words);
    expect(seen.busiest).toBeLessThanOrEqual(seen.allowed);
    expect(seen.longRun).toBeGreaterThanOrEqual(0.97);
    expect(seen.longRun).toBeLessThanOrEqual(1.002);
  });
});
