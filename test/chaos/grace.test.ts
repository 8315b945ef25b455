import { describe, test } from 'vitest';
import { keys } from '../../src/redis/keys.ts';
import { aofBytes, truncateAof } from '../support/aof.ts';
import { type AtEnd, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { never, until } from '../support/processes.ts';
import { startRedisProcess } from '../support/redis-process.ts';

const ids = makeIds('g', 100);
const settings = { EXPUNGE_REQUEST_TIMEOUT_MS: '1000' };
const hour = 3_600_000;

/** A detached run that starts in an hour, on a Redis that `lose` takes back to where it was when the run was accepted. */
async function openScene(atEnd: AtEnd) {
  const redis = await startRedisProcess(atEnd);
  const url = `redis://127.0.0.1:${redis.port}`;
  const harness = await openHarness(atEnd, { objects: annotations(ids) }, { url });
  const list = ['run', harness.list(ids), '--resource', 'annotations', '--detach', '--yes'];
  await harness.expunge([...list, '--grace', '1h']);
  const { id, startsAt } = await harness.runIs('accepted', ({ state }) => state === 'running');
  const accepted = aofBytes(redis);
  const lose = async () => {
    await truncateAof(redis, accepted);
    await harness.runIs('back', () => true);
  };
  return { harness, id, startsAt, list, lose };
}

/** The same, after its worker was killed, and Redis with it, and Redis came back as it was when the run was accepted. */
async function openBroken(atEnd: AtEnd) {
  const { harness, id, lose } = await openScene(atEnd);
  const worker = await harness.spawnWorker([], settings);
  await harness.expunge(['rate', id, '500/s']);
  worker.signal('SIGKILL');
  await worker.ended;
  await lose();
  if ((await harness.onlyRun()).rate !== null) throw new Error('it is no older copy');
  return { harness, id, startIn: (ms: number) => harness.redis.hset(keys.run(id), 'startsAt', Date.now() + ms) };
}

describe.concurrent('while worker and Redis are killed, and an older Redis comes back', () => {
  /** @invariant not-before-start */
  test('a run sends nothing before its start, and then all of it', async ({ expect, onTestFinished }) => {
    const { harness, startIn } = await openBroken(onTestFinished);
    await startIn(3_000);
    const { startsAt } = await harness.onlyRun();
    await harness.worker([], settings);
    await harness.runIs('ended', ({ state }) => state === 'completed');
    expect(harness.sandbox.seen).toHaveLength(ids.length);
    const early = harness.arrivals.filter((at) => performance.timeOrigin + at < startsAt);
    expect(early).toEqual([]);
  });

  test('a run that is cancelled before its start sends nothing', async ({ expect, onTestFinished }) => {
    const { harness, id, startIn } = await openBroken(onTestFinished);
    expect((await harness.expunge(['cancel', id, '--yes'])).code).toBe(0);
    await startIn(0);
    await harness.worker([], settings);
    await never('a request is sent', () => harness.sandbox.seen.length > 0, 2_000);
    expect(await harness.onlyRun()).toMatchObject({ state: 'cancelled', attempts: 0 });
  });

  test('a later start that is lost is written again by a worker that has seen it', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, id, startsAt, list, lose } = await openScene(onTestFinished);
    await harness.worker([], settings);
    const later = startsAt + hour;
    expect((await harness.expunge([...list, '--start-at', new Date(later).toISOString()])).code).toBe(0);
    expect(await harness.onlyRun()).toMatchObject({ id, startsAt: later });
    const looks = async () => Number(await harness.redis.hget(keys.witness(harness.target.fp), 'looks'));
    const before = await looks();
    await until('the worker has looked', async () => (await looks()) > before + 1);
    await lose();
    await harness.runIs('delayed again', (run) => run.startsAt === later);
    expect(harness.sandbox.seen).toEqual([]);
  });
});
