import { expect, onTestFinished, test } from 'vitest';
import { seeClusterStorm } from '../support/cluster-storm.ts';

test.each([
  ['dies', 'SIGKILL'],
  ['hangs', 'SIGSTOP'],
] as const)('50,000 ids on a cluster whose slots move, and whose primary %s in mid-run', async (_, signal) => {
  const ids = 50_000;
  const { run, stoodStillMs, seconds, ...seen } = await seeClusterStorm({ ids, signal, atEnd: onTestFinished });
  const { deleted, absent, gone_unconfirmed, unknown, failed } = run.counts;
  console.log(
    `${signal}: ${seconds.toFixed(1)} s, of which ${(stoodStillMs / 1_000).toFixed(1)} s without a request;`,
    `${deleted} deleted, ${absent} absent, ${gone_unconfirmed} gone_unconfirmed, ${unknown} unknown, ${failed} failed`,
  );
  expect(seen).toEqual({ broken: null, hasEnded: false });
  expect(deleted + absent + gone_unconfirmed).toBe(ids);
  expect(stoodStillMs).toBeGreaterThan(1_000); // else nobody has felt it
  expect(stoodStillMs).toBeLessThan(15_000);
});
