import { expect, onTestFinished, test } from 'vitest';
import { runFailover } from '../support/failover.ts';

test('a run goes on when the primary of a Sentinel set is killed', async () => {
  const { run, broken, hasEnded, resumedAfterMs } = await runFailover(onTestFinished, 'killed', 3_000);
  expect({ broken, hasEnded }).toEqual({ broken: null, hasEnded: false });
  expect(run.counts.failed + run.counts.unknown + run.counts.not_attempted).toBe(0);
  expect(resumedAfterMs).toBeLessThan(5_000);
});
