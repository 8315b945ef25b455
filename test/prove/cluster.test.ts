import { expect, onTestFinished, test } from 'vitest';
import { runClusterStorm } from '../support/cluster-storm.ts';

test.each([
  ['that has the run dies, two workers', { victim: 'run', signal: 'SIGKILL', workers: 2 }],
  ['that has the run hangs and wakes, two workers', { victim: 'run', signal: 'SIGSTOP', workers: 2 }],
  ['that has the queue dies, two workers', { victim: 'target', signal: 'SIGKILL', workers: 2 }],
  ['that has the run dies, in one process', { victim: 'run', signal: 'SIGKILL', workers: 0 }],
] as const)('50,000 ids on a cluster whose slots move; then the primary %s', async (what, blow) => {
  const ids = 50_000;
  const { run, stoodStillMs, seconds, ...seen } = await runClusterStorm({ ids, ...blow, atEnd: onTestFinished });
  const { deleted, absent, gone_unconfirmed, unknown, failed } = run.counts;
  console.log(
    `${what}: ${seconds.toFixed(1)} s, of which ${(stoodStillMs / 1_000).toFixed(1)} s without a request;`,
    `${deleted} deleted, ${absent} absent, ${gone_unconfirmed} gone_unconfirmed, ${unknown} unknown, ${failed} failed`,
  );
  expect(seen).toEqual({ broken: null, hasEnded: false });
  expect(deleted + absent + gone_unconfirmed).toBe(ids);
  expect(stoodStillMs).toBeLessThan(12_000);
});
