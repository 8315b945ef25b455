import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { aofBytes, truncateAof } from '../support/aof.ts';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { startRedisProcess } from '../support/redis-process.ts';

const ids = makeIds('g', 300);
const quick = { EXPUNGE_REQUEST_TIMEOUT_MS: '1000' };

/** A detached run with a grace period of 10 s, and a worker in a process of its own. */
async function openScene() {
  const redis = await startRedisProcess(onTestFinished);
  const url = `redis://127.0.0.1:${redis.port}`;
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) }, { url });
  const spawnWorker = () => harness.spawnWorker([], quick);
  let worker = await spawnWorker();
  const run = ['run', harness.list(ids), '--resource', 'annotations', '--detach', '--yes', '--grace', '10s'];
  expect((await harness.expunge(run)).code).toBe(0);
  const { id, startsAt } = await harness.runIs('accepted', ({ state }) => state === 'running');
  const kill = async () => {
    worker.signal('SIGKILL');
    await worker.ended;
  };
  /** Kills worker and Redis, with -9 both, has the Redis start with the first `bytes` that it wrote, and starts another worker. */
  const breakAll = async (bytes: number | null) => {
    await kill();
    await truncateAof(redis, bytes);
    await harness.runIs('back', () => true, 60_000);
    worker = await spawnWorker();
  };
  return { harness, redis, id, startsAt, breakAll };
}

type Scene = Awaited<ReturnType<typeof openScene>>;

/** Everything dies twice before the start of the run, and comes back with an older copy of the files of Redis the first time. */
async function breakTwice({ harness, redis, id, breakAll }: Scene): Promise<void> {
  const older = aofBytes(redis);
  await harness.expunge(['pause', id]);
  await harness.expunge(['resume', id]);
  await harness.expunge(['rate', id, '500/s']);
  expect(aofBytes(redis)).toBeGreaterThan(older);
  await breakAll(older);
  expect(await harness.onlyRun()).toMatchObject({ state: 'running', rate: null }); // it is the older copy
  await breakAll(null);
}

/** When requests arrived, in ms since 1970. */
const arrivals = ({ harness }: Scene) => harness.arrivals.map((at) => performance.timeOrigin + at);

/** @invariant not-before-start */
test('a run sends nothing if it is cancelled a second before its start, although worker and Redis were killed and an older Redis came back', async () => {
  const scene = await openScene();
  const { harness, id, startsAt } = scene;
  await breakTwice(scene);
  expect(Date.now()).toBeLessThan(startsAt - 1_000);
  await sleep(startsAt - 1_000 - Date.now());
  expect((await harness.expunge(['cancel', id, '--yes'])).code).toBe(0);
  await sleep(startsAt + 5_000 - Date.now());
  expect(await harness.onlyRun()).toMatchObject({ state: 'cancelled', attempts: 0, startsAt });
  expect(harness.sandbox.seen).toEqual([]);
});

test('negative control: without the cancel every request arrives after the start, and none before', async () => {
  const scene = await openScene();
  const { harness, startsAt } = scene;
  await breakTwice(scene);
  expect(Date.now()).toBeLessThan(startsAt);
  await harness.runIs('ended', ({ state }) => state === 'completed', 60_000);
  expect(harness.sandbox.seen).toHaveLength(ids.length);
  expect(Math.min(...arrivals(scene))).toBeGreaterThanOrEqual(startsAt);
});

test('a later start that Redis loses is written again by a worker that has seen it, and nothing is sent before', async () => {
  const { harness, redis, id, startsAt } = await openScene();
  const older = aofBytes(redis);
  const later = startsAt + 12_000;
  const again = ['run', harness.list(ids), '--resource', 'annotations', '--detach', '--yes'];
  expect((await harness.expunge([...again, '--start-at', new Date(later).toISOString()])).code).toBe(0);
  expect(await harness.onlyRun()).toMatchObject({ id, startsAt: later });
  await sleep(2_500); // a worker looks every second
  await truncateAof(redis, older);
  await harness.runIs('delayed again', (run) => run.startsAt === later, 60_000);
  await sleep(Math.max(0, startsAt + 3_000 - Date.now()));
  expect(harness.sandbox.seen).toEqual([]);
  await harness.runIs('ended', ({ state }) => state === 'completed', 60_000);
  const first = Math.min(...harness.arrivals.map((at) => performance.timeOrigin + at));
  expect(first).toBeGreaterThanOrEqual(later);
});

test('a cancel that Redis loses before the start is written again by a worker that has seen it, and nothing is sent', async () => {
  const { harness, redis, id, startsAt } = await openScene();
  const older = aofBytes(redis);
  expect((await harness.expunge(['cancel', id, '--yes'])).code).toBe(0);
  await sleep(2_500); // a worker looks every second
  await truncateAof(redis, older);
  await harness.runIs('cancelled again', ({ state }) => state === 'cancelled', 60_000);
  await sleep(Math.max(0, startsAt + 3_000 - Date.now()));
  await until('the run is there', async () => (await harness.onlyRun()).state === 'cancelled');
  expect(harness.sandbox.seen).toEqual([]);
});
