import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { isFinalized, type Run } from '../../src/ledger/run.ts';
import { addressFromUrl } from '../../src/redis/address.ts';
import { keys } from '../../src/redis/keys.ts';
import { type ClusterNode, openCluster, type TestCluster } from '../support/cluster.ts';
import { command as call } from '../support/command.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { listRuns } from '../support/list-runs.ts';
import { clusterRights, loginRule } from '../support/login.ts';
import { writeManyRuns } from '../support/many-runs.ts';
import { until } from '../support/processes.ts';
import { openReceiver } from '../support/receiver.ts';
import { openLedgerOn } from '../support/redis.ts';
import { startRedisProcess } from '../support/redis-process.ts';
import { addSchedule, freshIds, workerWith } from '../support/schedules.ts';

const ends: (() => Promise<void>)[] = [];
let cluster: TestCluster;
beforeAll(async () => {
  cluster = await openCluster((end) => ends.push(end));
});
afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

/** Runs a command to its end, which must be a good one; what it wrote. */
async function succeed(harness: Harness, ...args: string[]) {
  const running = harness.spawn(args);
  const { code } = await running.ended;
  if (code !== 0) throw new Error(`expunge ${args.join(' ')} ended with ${code}: ${running.stderr}`);
  return running;
}

/** Every key of a run, wherever it is, and when it goes, in ms; -1 = never. */
async function keysOf({ id }: Run): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const { redis } of cluster.nodes) {
    if (!(await redis.info('replication')).includes('role:master')) continue;
    for (const key of await redis.keys(`*${id}*`)) found[key] = await redis.pttl(key);
  }
  return found;
}

function onEach(task: (node: ClusterNode) => Promise<unknown>): Promise<unknown[]> {
  return Promise.all(cluster.nodes.map(task));
}

const isCompleted = ({ state }: Run) => state === 'completed';

describe.concurrent('with a Redis Cluster', () => {
  test('runs lie on several of its servers; each is reported, expires and can be removed', async ({
    expect,
    onTestFinished,
  }) => {
    const lists = Array.from({ length: 10 }, (_, n) => makeIds(`list-${n}`, 100));
    const harness = await openHarness(onTestFinished, { objects: annotations(lists.flat()) }, cluster);
    const servers = new Set<number>();
    for (const [n, ids] of lists.entries()) {
      const list = harness.file(`${n}.txt`, `${ids.join('\n')}\n`);
      await succeed(harness, 'run', list, '--resource', 'annotations', '--yes');
      for (const { id } of await harness.runs()) servers.add((await cluster.primaryOf(keys.run(id))).port);
      if (servers.size > 1) break;
    }
    const runs = await harness.runs();
    expect(runs.map(({ state, counts }) => [state, counts.deleted])).toEqual(runs.map(() => ['completed', 100]));
    expect(servers.size).toBeGreaterThan(1);
    for (const run of runs) expect(Math.min(...Object.values(await keysOf(run)))).toBeGreaterThan(0);
    const [gone, left] = runs as [Run, Run];
    await succeed(harness, 'report', left.id, '--verify');
    await succeed(harness, 'runs', 'remove', gone.id, '--yes');
    expect(await keysOf(gone)).toEqual({});
    const listed = (await succeed(harness, 'runs')).stdout;
    expect([gone, left].map(({ id }) => listed.includes(id))).toEqual([false, true]);
  });

  test('a run left to two workers is steered, its target stopped, and a second one cancelled', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('steered', 2_000);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) }, cluster);
    const submit = (list: string) => succeed(harness, 'run', list, '--resource', 'annotations', '--yes', '--detach');
    expect((await submit(harness.list(ids))).stderr).toContain('no worker of this target is alive');
    const { id } = await harness.onlyRun();
    await succeed(harness, 'rate', id, '50/s');
    await Promise.all([harness.spawnWorker(), harness.spawnWorker()]);
    await until('the run is under way', () => harness.arrivals.length > 20);
    await succeed(harness, 'pause', id, '--reason', 'a look');
    expect((await succeed(harness, 'status', id)).stdout).toContain('a look');
    await succeed(harness, 'stop-all', '--reason', 'they call us');
    await succeed(harness, 'resume', id);
    await succeed(harness, 'rate', id, 'none');
    const second = harness.file('second.txt', `${makeIds('second', 600).join('\n')}\n`);
    const submitted = await submit(second);
    expect(submitted.stderr).toContain('they call us');
    expect(submitted.stderr).not.toContain('no worker');
    const other = (await harness.runs()).find((run) => run.id !== id)!;
    await succeed(harness, 'cancel', other.id, '--yes');
    const before = harness.arrivals.length;
    await succeed(harness, 'start-all');
    const ended = async () => (await harness.runs()).map(({ state }) => state).filter(isFinalized);
    await until('both have ended', async () => (await ended()).length === 2, 60_000);
    expect((await ended()).toSorted()).toEqual(['cancelled', 'completed']);
    expect([before < ids.length, harness.arrivals.length]).toEqual([true, ids.length]);
  });

  test('the login of the README will do, and a password that is replaced under a worker is read again', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('login', 60);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) }, cluster);
    const file = harness.file('password', 'first');
    const admit = (password: string) =>
      onEach(({ redis }) => redis.acl('SETUSER', 'tight', ...loginRule(password), ...clusterRights()));
    await admit('first');
    const env = { EXPUNGE_REDIS_USERNAME_FILE: harness.file('user', 'tight'), EXPUNGE_REDIS_PASSWORD_FILE: file };
    await harness.spawnWorker([], env);
    await admit('second');
    harness.file('password', 'second');
    await onEach(({ redis }) => redis.call('CLIENT', 'KILL', 'USER', 'tight'));
    const submitted = harness.spawn(['run', harness.list(ids), '--resource', 'annotations', '--yes', '--detach'], env);
    expect(await submitted.ended, submitted.stderr).toMatchObject({ code: 0 });
    await harness.runIs('completed', isCompleted);
  });

  test('a schedule notifies its workers, and its runs are made and processed', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, {}, cluster);
    await addSchedule(harness, 'often', '--cron', '* * * * * *', '--from', 'fresh', '--expect-absent');
    await workerWith(harness, 'config.json', { fresh: freshIds('s', 25) });
    const ended = async () => (await harness.runs()).filter(isCompleted).length;
    await until('two of its runs have ended', async () => (await ended()) >= 2, 60_000);
    expect((await succeed(harness, 'schedule', 'list')).stdout).toContain('often');
    await succeed(harness, 'schedule', 'remove', 'often', '--yes');
  });

  test('the results of runs are delivered, and receivers are told what happens', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, {}, cluster);
    const receiver = await openReceiver(onTestFinished);
    const told = () => receiver.received.map(({ headers }) => String(headers['webhook-id']));
    const args = ['--results', receiver.url, '--notify', receiver.url];
    await workerWith(harness, 'config.json', { fresh: freshIds('s', 25) }, {}, args);
    const add = ['--cron', '* * * * * *', '--from', 'fresh', '--expect-absent', '--heartbeat', `${receiver.url}/beat`];
    await addSchedule(harness, 'often', ...add);
    const isBeating = () => receiver.files().has('/beat');
    await until('a heartbeat came', isBeating, 60_000);
    await succeed(harness, 'schedule', 'pause', 'often');
    await until('the pause is told', () => told().some((id) => id.includes('often-paused')), 60_000);
    const areDone = async () =>
      (await harness.runs()).every(
        ({ id }) => receiver.files().has(`/${id}/summary.json`) && told().includes(`run-${id}-2`),
      );
    await until('all is delivered and told', areDone, 60_000);
    expect((await harness.runs()).length).toBeGreaterThan(0);
    await succeed(harness, 'schedule', 'remove', 'often', '--yes');
  });
});

describe('a Redis Cluster', () => {
  test('lists 10,000 runs in a second or so', async () => {
    const redis = await openLedgerOn(addressFromUrl(cluster.url, true));
    await writeManyRuns(redis, 10_000);
    const startedAt = performance.now();
    expect((await listRuns(redis)).length).toBeGreaterThanOrEqual(10_000);
    console.log(`10,000 runs on a cluster: ${Math.round(performance.now() - startedAt)} ms`);
    redis.disconnect();
  });

  const runsWith = async (url: string) => (await call(['runs'], { env: { REDIS_URL: url } })).stderr;

  test('is not taken for a single Redis, nor the other way round', async () => {
    const { port } = await cluster.primaryOf('x');
    expect(await runsWith(`redis://127.0.0.1:${port}`)).toContain('this Redis is a server of a cluster');
    const single = await startRedisProcess(onTestFinished);
    expect(await runsWith(`redis+cluster://127.0.0.1:${single.port}`)).toContain('cluster support disabled');
  });

  test('is refused while one of its servers evicts, or a slot is nowhere', async () => {
    const { redis, port } = await cluster.primaryOf('x');
    expect(
      (await call(['check', '--base-url', 'http://127.0.0.1:9'], { env: { REDIS_URL: cluster.url } })).stdout,
    ).toContain('16384 of 16384 slots are served by 3 primaries');
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await runsWith(cluster.url)).toContain(`evicts keys (maxmemory-policy allkeys-lru)`);
    expect(await runsWith(cluster.url)).toContain(`${port}`);
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
    for (const node of cluster.nodes)
      await node.redis.cluster('DELSLOTS', await redis.cluster('KEYSLOT', 'x')).catch(() => {});
    expect(await runsWith(cluster.url)).toContain('the cluster is down (state fail, 16383 of 16384 slots served)');
    for (const node of cluster.nodes) await node.redis.config('SET', 'cluster-require-full-coverage', 'no');
    expect(await runsWith(cluster.url)).toContain('this cluster serves 16383 of its 16384 slots');
  });
});
