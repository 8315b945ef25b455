import { expect, onTestFinished, test } from 'vitest';
import { type Failover, runFailover } from '../support/failover.ts';

const ways: Failover[] = ['killed', 'frozen and woken', 'told to hand over'];

test.each(ways)('a run goes on when the primary of a Sentinel set is %s', async (what) => {
  const { run, broken, stoodMs, resumedAfterMs, hasEnded, seconds } = await runFailover(onTestFinished, what, 50_000);
  const stood = `stood ${Math.round(stoodMs)} ms, went on ${Math.round(resumedAfterMs)} ms after another one was named`;
  console.log(`primary ${what}: ${stood}, ${seconds.toFixed(1)} s`, run.counts);
  expect({ broken, hasEnded }).toEqual({ broken: null, hasEnded: false });
  expect(run.counts.failed + run.counts.unknown + run.counts.not_attempted).toBe(0);
  expect(resumedAfterMs).toBeLessThan(5_000);
});
