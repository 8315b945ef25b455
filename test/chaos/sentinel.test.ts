import { expect, onTestFinished, test } from 'vitest';
import { type Failover, runFailover } from '../support/failover.ts';
import { isFull, sized } from '../support/size.ts';

const ways: readonly Failover[] = sized(['killed'], ['killed', 'frozen and woken', 'told to hand over']);

test.each(ways)('a run goes on when the primary of a Sentinel set is %s', async (what) => {
  const ids = sized(3_000, 50_000);
  const { run, broken, stoodMs, resumedAfterMs, hasEnded, seconds } = await runFailover(onTestFinished, what, ids);
  const stood = `stood ${Math.round(stoodMs)} ms, went on ${Math.round(resumedAfterMs)} ms after another one was named`;
  console.log(`primary ${what}: ${stood}, ${seconds.toFixed(1)} s`, run.counts);
  expect({ broken, hasEnded }).toEqual({ broken: null, hasEnded: false });
  expect(run.counts.failed + run.counts.unknown + run.counts.not_attempted).toBe(0);
  if (isFull) expect(resumedAfterMs).toBeLessThan(5_000);
});
