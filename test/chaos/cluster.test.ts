import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { addressFromUrl } from '../../src/redis/address.ts';
import { checkCommand, openSilentApi } from '../support/check-command.ts';
import { findBroken } from '../support/checker.ts';
import { openCluster, type TestCluster } from '../support/cluster.ts';
import { runClusterStorm, runIs } from '../support/cluster-storm.ts';
import { startRun } from '../support/fleet.ts';
import { atEndOfTests, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { openLedgerOn } from '../support/redis.ts';
import { isFull, sized } from '../support/size.ts';

const count = sized(1_500, 50_000);
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

openSilentApi();

// One after another: what strikes comes last.
describe('on a Redis Cluster', () => {
  let cluster: TestCluster;
  const atEnd = atEndOfTests();
  beforeAll(async () => {
    cluster = await openCluster(atEnd);
  });

  test('expunge check looks at each primary, and at the slots', async () => {
    const { lines, code } = await checkCommand({ REDIS_URL: `${cluster.url},127.0.0.1:9` });
    expect(lines).toContain('warn redis reach: 127.0.0.1:9: connection refused');
    expect(lines.filter((line) => /^ok redis memory: .*\(port \d+\)$/.test(line))).toHaveLength(3);
    expect(lines).toContain('ok redis cluster: 16384 of 16384 slots are served by 3 primaries');
    expect(lines.at(-1)).toBe('ok redis writes: it accepts them');
    expect(code).toBe(0);
    const alone = await checkCommand({ REDIS_URL: `redis://127.0.0.1:${cluster.nodes[0]!.port}` });
    expect(alone.lines).toContain('fail redis role: it is a server of a cluster');
    expect(alone.code).toBe(6);
  });

  test('a command whose primary hangs is not sent again when its connection is given up', async () => {
    const mayFailOver = async (may: 'yes' | 'no') => {
      for (const { redis } of cluster.nodes)
        await redis.config('SET', 'cluster-replica-no-failover', may === 'yes' ? 'no' : 'yes');
    };
    await mayFailOver('no');
    const redis = await openLedgerOn(addressFromUrl(cluster.url, true));
    onTestFinished(() => redis.disconnect());
    const isGivenUp = new Promise((resolve) => redis.once('-node', resolve));
    await cluster.strike('counter', 'SIGSTOP');
    await expect(redis.incr('counter')).rejects.toThrow('Command timed out');
    await isGivenUp;
    cluster.wake();
    const counted = await until('the server answers again', () => redis.get('counter').catch(() => null));
    expect(counted).toBe('1'); // it was executed from the buffer of the server
    await mayFailOver('yes');
  });

  test('a worker waits for servers that are all down, and outlives their death', async () => {
    const ids = makeIds('c', 2_000);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 20 }, cluster);
    await cluster.killAll();
    const worker = harness.start(['worker']);
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

  // Each has a cluster and a machine to itself in full.
  test.for(blows)(
    'a run outlives the move of its slots to other servers, and then that the primary %s',
    async ([what, blow], { onTestFinished }) => {
      const struck = isFull ? await openCluster(onTestFinished) : cluster;
      const storm = { cluster: struck, ids: count, ...blow, atEnd: onTestFinished };
      const { run, stoodStillMs, seconds, ...seen } = await runClusterStorm(storm);
      const { deleted, absent, gone_unconfirmed } = run.counts;
      const stood = `${(stoodStillMs / 1_000).toFixed(1)} s without a request`;
      console.log(`${what}: ${seconds.toFixed(1)} s, of which ${stood};`, run.counts);
      expect(seen).toEqual({ broken: null, hasEnded: false });
      expect(deleted + absent + gone_unconfirmed).toBe(count);
      if (isFull) expect(stoodStillMs).toBeLessThan(12_000);
    },
  );
});
