import { expect, onTestFinished, test } from 'vitest';
import { seeClusterStorm } from '../support/cluster-storm.ts';

test('a run outlives the move of its slots to other servers of a cluster, and the death of its primary', async () => {
  const {
    run,
    stoodStillMs,
    seconds: _,
    ...seen
  } = await seeClusterStorm({
    ids: 3_000,
    signal: 'SIGKILL',
    atEnd: onTestFinished,
  });
  expect(seen).toEqual({ broken: null, hasEnded: false });
  expect(run.counts.deleted + run.counts.gone_unconfirmed + run.counts.absent).toBe(3_000);
  expect(stoodStillMs).toBeGreaterThan(1_000); // else nobody has felt it
  expect(stoodStillMs).toBeLessThan(20_000);
});
