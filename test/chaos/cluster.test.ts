import { describe, test } from 'vitest';
import { findBroken } from '../support/checker.ts';
import { openCluster } from '../support/cluster.ts';
import { runClusterStorm, runIs } from '../support/cluster-storm.ts';
import { startRun } from '../support/fleet.ts';
import { annotations, makeIds, openHarness } from '../support/harness.ts';
import { until } from '../support/processes.ts';

describe.concurrent('on a Redis Cluster', () => {
  test('a run outlives the move of its slots to other servers, and the death of its primary', async ({
    expect,
    onTestFinished,
  }) => {
    const blow = { victim: 'run', signal: 'SIGKILL', workers: 2 } as const;
    const seen = await runClusterStorm({ ids: 3_000, ...blow, atEnd: onTestFinished });
    expect(seen).toMatchObject({ broken: null, hasEnded: false });
    const { deleted, absent, gone_unconfirmed } = seen.run.counts;
    expect(deleted + absent + gone_unconfirmed).toBe(3_000);
    expect(seen.stoodStillMs).toBeLessThan(20_000);
  });

  test('a worker waits for servers that are all down, and outlives their death', async ({ expect, onTestFinished }) => {
    const ids = makeIds('c', 2_000);
    const cluster = await openCluster(onTestFinished);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 20 }, cluster);
    await cluster.killAll();
    const worker = harness.expunge(['worker']);
    await until('it says what it waits for', () => worker.stderr.includes('none of its servers answers'));
    await cluster.restartAll();
    await until('it has found them', () => worker.stderr.includes('"ready"'));
    await until('so have we', () => harness.redis.ping().catch(() => ''));
    await startRun(harness, ids, ['--detach']);
    const { id } = await harness.run();
    await until('the run is under way', () => harness.arrivals.length > 200);
    await cluster.killAll();
    await cluster.restartAll();
    const run = await runIs(harness, id, 'it is completed', ({ state }) => state === 'completed', 60_000);
    expect([worker.isOver, run.counts.deleted + run.counts.gone_unconfirmed]).toEqual([false, ids.length]);
    expect(await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders: [] })).toBeNull();
  });
});
