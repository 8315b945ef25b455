import { describe, expect, onTestFinished, test } from 'vitest';
import { readBudget, readPin } from '../../src/limiter/read-target.ts';
import { readStops } from '../../src/limiter/stop.ts';
import { keys } from '../../src/redis/keys.ts';
import { readSchedule } from '../../src/schedule/schedule-store.ts';
import { aofBytes, truncateAof } from '../support/aof.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { startRedisProcess } from '../support/redis-process.ts';
import { storeSchedule } from '../support/schedules.ts';

const ids = makeIds('q', 2_000);
const settings = { EXPUNGE_REQUEST_TIMEOUT_MS: '1000' };
const as = (name: string) => ({ env: { EXPUNGE_USER: name } });

/** A worker with HTTP in the middle of a run at 50/s, on a Redis that `lose` takes back to where it was at the last `mark`. */
async function openScene() {
  const redis = await startRedisProcess(onTestFinished);
  const harness = await openHarness(
    onTestFinished,
    { objects: annotations(ids) },
    { url: `redis://127.0.0.1:${redis.port}` },
  );
  const worker = await harness.worker(['--http', '127.0.0.1:0'], settings);
  const line = ['run', harness.list(ids), '--resource', 'annotations', '--rate', '50/s', '--detach', '--yes'];
  await harness.expunge(line, { env: settings });
  await harness.runIs('under way', ({ counts }) => counts.deleted > 20);
  const { id } = await harness.onlyRun();
  const url = await until('it listens', () => /http:\/\/[\d.]+:\d+/.exec(worker.stderr)?.[0]);
  let marked = 0;
  const mark = () => {
    marked = aofBytes(redis);
  };
  const lose = async () => {
    await truncateAof(redis, marked);
    await harness.runIs('back', () => true, 60_000);
  };
  const ready = async () => (await fetch(`${url}/readyz`)).status;
  const metrics = async () => (await fetch(`${url}/metrics`)).text();
  return { harness, worker, id, mark, lose, ready, metrics };
}

const say = (harness: Harness, line: string) => harness.expunge(line.split(' '), as('ana'));

describe('a Redis that has lost an action which it had acknowledged', () => {
  test('gets a cancel again from the worker that has seen it, and nothing more is sent', async () => {
    const { harness, id, mark, lose, worker } = await openScene();
    mark();
    expect((await say(harness, `cancel ${id} --yes`)).code).toBe(0);
    const sent = harness.sandbox.seen.length;
    await seenByWorker(harness);
    await lose();
    const run = await harness.runIs('cancelled again', ({ state }) => state === 'cancelled');
    expect(run).toMatchObject({ who: 'ana' });
    expect(harness.sandbox.seen.length).toBe(sent);
    expect(worker.stderr).toContain('an action that Redis has lost is written again');
  });

  test('gets a pause again, which then holds until `resume`', async () => {
    const { harness, id, mark, lose } = await openScene();
    mark();
    await say(harness, `pause ${id} --reason hold`);
    const sent = await quiet(harness);
    await lose();
    expect(await harness.runIs('paused again', ({ state }) => state === 'paused')).toMatchObject({
      by: 'operator',
      who: 'ana',
      reason: 'hold',
    });
    expect(harness.sandbox.seen.length).toBe(sent);
    await say(harness, `resume ${id}`);
    await until('negative control: it goes on', () => harness.sandbox.seen.length > sent + 5);
  });

  test('gets a stop, a budget, a pin and the pause of a schedule again', async () => {
    const { harness, mark, lose, worker } = await openScene();
    const { fp } = harness.target;
    await storeSchedule(harness, 'nightly', {}, Date.now());
    mark();
    await say(harness, 'stop-all --reason incident');
    await say(harness, 'target budget 1000/day');
    await say(harness, 'target pin-rate 40/s');
    await say(harness, 'schedule pause nightly');
    const sent = await quiet(harness);
    await seenByWorker(harness);
    await lose();
    await until('the stop is back', async () => (await readStops(harness.redis, fp)).target?.who === 'ana');
    expect((await readStops(harness.redis, fp)).target).toMatchObject({ who: 'ana', reason: 'incident' });
    await until(
      'the schedule is paused',
      async () => (await readSchedule(harness.redis, fp, 'nightly'))?.state === 'paused',
    );
    expect(await readBudget(harness.redis, fp)).toMatchObject({ rate: [{ count: 1_000 }], who: 'ana' });
    expect(await readPin(harness.redis, fp)).toMatchObject({ rate: [{ count: 40 }], who: 'ana' });
    expect(harness.sandbox.seen.length).toBe(sent);
    await until('it says what is in force', () => worker.stderr.includes('these actions are in force'));
    await say(harness, 'start-all');
    await until('negative control: it goes on', () => harness.sandbox.seen.length > sent + 5);
  });

  test('keeps what was lifted before the loss lifted', async () => {
    const { harness, id, mark, lose } = await openScene();
    await say(harness, `pause ${id}`);
    await say(harness, 'stop-all');
    await seenByWorker(harness);
    await say(harness, 'start-all');
    await say(harness, `resume ${id}`);
    await seenByWorker(harness);
    mark();
    await harness.redis.set('a', 'write');
    const sent = harness.sandbox.seen.length;
    await lose();
    await until('it goes on', () => harness.sandbox.seen.length > sent + 5);
  });
});

describe('a Redis that was flushed', () => {
  test('makes its workers not ready until somebody has looked', async () => {
    const { harness, worker, ready, metrics, id } = await openScene();
    const { fp } = harness.target;
    await storeSchedule(harness, 'nightly', {}, Date.now());
    await say(harness, 'target budget 1000/day');
    await say(harness, 'stop-all --reason incident');
    await seenByWorker(harness);
    expect(await ready()).toBe(200);
    await harness.redis.flushall();
    await until('it is not ready', async () => (await ready()) === 503);
    expect(worker.stderr).toContain('Redis has lost data of this target');
    for (const what of ['schedule nightly', `run ${id}`])
      await until(`it names ${what}`, () => worker.stderr.includes(what));
    expect(worker.stderr).toContain('expunge target acknowledge');
    expect(await metrics()).toMatch(/expunge_redis_losses_total [1-9]/);
    const events = Object.values(await harness.redis.hgetall(keys.outboxEvents(fp))).map((event) => JSON.parse(event));
    expect(events.map(({ type }) => type)).toContain('target.data_lost');
    expect((await readStops(harness.redis, fp)).target).toMatchObject({ who: 'ana', reason: 'incident' });
    expect(await readBudget(harness.redis, fp)).toMatchObject({ who: 'ana' });
    const looked = await say(harness, 'target acknowledge --reason seen');
    expect([looked.code, looked.stderr]).toEqual([0, expect.stringContaining('acknowledged')]);
    await until('it is ready', async () => (await ready()) === 200);
    expect((await say(harness, 'target acknowledge')).stderr).toContain('nothing to acknowledge');
  });
});

/** How many requests there were once no more come: each takes less than a second here. */
async function quiet({ sandbox }: Harness): Promise<number> {
  let [last, since] = [sandbox.seen.length, performance.now()];
  await until('no more requests come', () => {
    if (sandbox.seen.length !== last) [last, since] = [sandbox.seen.length, performance.now()];
    return performance.now() - since > 1_000;
  });
  return last;
}

/** The worker looks at all actions every few seconds; it has then looked after this. */
async function seenByWorker({ redis, target }: Harness): Promise<void> {
  const looked = await redis.hget(keys.witness(target.fp), 'looks');
  await until(
    'the worker has looked',
    async () => Number(await redis.hget(keys.witness(target.fp), 'looks')) > Number(looked) + 1,
  );
}
