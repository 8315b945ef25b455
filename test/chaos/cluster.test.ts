import { expect, onTestFinished, test } from 'vitest';
import { seeClusterStorm } from '../support/cluster-storm.ts';

test('a run outlives the move of its slots to other servers of a cluster, and the death of its primary', async () => {
  const blow = { victim: 'run', signal: 'SIGKILL', workers: 2 } as const;
  const { run, stoodStillMs, broken, hasEnded } = await seeClusterStorm({ ids: 3_000, ...blow, atEnd: onTestFinished });
  expect({ broken, hasEnded }).toEqual({ broken: null, hasEnded: false });
  expect(run.counts.deleted + run.counts.absent + run.counts.gone_unconfirmed).toBe(3_000);
  expect(stoodStillMs).toBeLessThan(20_000);
});
