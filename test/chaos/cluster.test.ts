import { describe, test } from 'vitest';
import { findBroken } from '../support/checker.ts';
import { openCluster } from '../support/cluster.ts';
import { runClusterStorm, runIs } from '../support/cluster-storm.ts';
import { startRun } from '../support/fleet.ts';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { isFull, sized } from '../support/size.ts';

const ids = sized(3_000, 50_000);
const dying = ['that has the run dies, two workers', { victim: 'run', signal: 'SIGKILL', workers: 2 }] as const;
const blows = sized(
  [dying] as const,
  [
    dying,
    ['that has the run hangs and wakes, two workers', { victim: 'run', signal: 'SIGSTOP', workers: 2 }],
    ['that has the queue dies, two workers', { victim: 'target', signal: 'SIGKILL', workers: 2 }],
    ['that has the run dies, in one process', { victim: 'run', signal: 'SIGKILL', workers: 0 }],
  ] as const,
);

// One after another in full: each has a machine to itself.
describe('on a Redis Cluster', () => {
  test.for(blows)(
    'a run outlives the move of its slots to other servers, and then that the primary %s',
    async ([what, blow], { expect, onTestFinished }) => {
      const { run, stoodStillMs, seconds, ...seen } = await runClusterStorm({ ids, ...blow, atEnd: onTestFinished });
      const { deleted, absent, gone_unconfirmed } = run.counts;
      const stood = `${(stoodStillMs / 1_000).toFixed(1)} s without a request`;
      console.log(`${what}: ${seconds.toFixed(1)} s, of which ${stood};`, run.counts);
      expect(seen).toEqual({ broken: null, hasEnded: false });
      expect(deleted + absent + gone_unconfirmed).toBe(ids);
      if (isFull) expect(stoodStillMs).toBeLessThan(12_000);
    },
  );

  test('a worker waits for servers that are all down, and outlives their death', async ({ expect, onTestFinished }) => {
    const ids = makeIds('c', 2_000);
    const cluster = await openCluster(onTestFinished);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 20 }, cluster);
    await cluster.killAll();
    const worker = harness.spawn(['worker']);
    await until('it says what it waits for', () => worker.stderr.includes('none of its servers answers'));
    await cluster.restartAll();
    await until('it has found them', () => worker.stderr.includes('"ready"'));
    await until('so have we', () => harness.redis.ping().catch(() => ''));
    await startRun(harness, ids, ['--detach']);
    const { id } = await harness.onlyRun();
    await until('the run is under way', () => harness.arrivals.length > 200);
    await cluster.killAll();
    await cluster.restartAll();
    const run = await runIs(harness, id, 'it is completed', ({ state }) => state === 'completed');
    expect([worker.isOver, run.counts.deleted + run.counts.gone_unconfirmed]).toEqual([false, ids.length]);
    expect(await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders: [] })).toBeNull();
  });
});
