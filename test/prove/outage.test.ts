import { expect, onTestFinished, test } from 'vitest';
import { measureOutage } from '../support/outage.ts';

test.each([
  { kind: 'status-503', workers: 2, seconds: 300 },
  { kind: 'reset', workers: 2, seconds: 60 },
  { kind: 'refused', workers: 2, seconds: 30 },
] as const)('$seconds s of $kind cost no id anything and end by themselves', async (outage) => {
  const ids = 20_000;
  const { wasted, probesPerSecond, resumedAfterMs, run, words } = await measureOutage({
    ...outage,
    ids,
    atEnd: onTestFinished,
  });
  console.log(words);
  expect(wasted ?? 0).toBeLessThanOrEqual(200);
  expect(probesPerSecond ?? 0).toBeLessThanOrEqual(2);
  expect(resumedAfterMs).toBeLessThan(5_000);
  const { deleted, gone_unconfirmed, failed, unknown } = run.counts;
  expect([failed, unknown, deleted + gone_unconfirmed]).toEqual([0, 0, ids]);
  expect(run.attempts - ids).toBeLessThanOrEqual(200);
});
