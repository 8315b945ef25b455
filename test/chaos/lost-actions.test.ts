import { describe, test } from 'vitest';
import { readLimit } from '../../src/limiter/read-target.ts';
import { readStops } from '../../src/limiter/stop.ts';
import { parseRate } from '../../src/model/rate.ts';
import { keys } from '../../src/redis/keys.ts';
import { readSchedule } from '../../src/schedule/schedule-store.ts';
import { aofBytes, truncateAof } from '../support/aof.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { openProbes } from '../support/probes.ts';
import { until, without } from '../support/processes.ts';
import { startRedisProcess } from '../support/redis-process.ts';
import { storeSchedule } from '../support/schedules.ts';

const ids = makeIds('q', 2_000);
const settings = { EXPUNGE_REQUEST_TIMEOUT_MS: '1000' };

/** A worker with HTTP in the middle of a run at 50/s, on a Redis that `lose` takes back to where it was at the last `mark`. */
async function openScene(atEnd: AtEnd) {
  const redis = await startRedisProcess(atEnd);
  const own = { url: `redis://127.0.0.1:${redis.port}` };
  const harness = await openHarness(atEnd, { objects: annotations(ids) }, own);
  const worker = await harness.spawnWorker(['--http', '127.0.0.1:0'], { ...settings, ...without('patience') });
  const line = ['run', harness.list(ids), '--resource', 'annotations', '--rate', '50/s', '--detach', '--yes'];
  await harness.expunge(line, { env: settings });
  const { id } = await harness.runIs('under way', ({ counts }) => counts.deleted > 20);
  let marked = 0;
  const mark = () => {
    marked = aofBytes(redis);
  };
  const lose = async () => {
    await truncateAof(redis, marked);
    await harness.runIs('back', () => true);
  };
  const say = async (line: string) => {
    const done = await harness.expunge(line.split(' '), { env: { EXPUNGE_USER: 'ana' } });
    if (done.code !== 0) throw new Error(`${line}: ${done.stderr}`);
    return done;
  };
  return { harness, worker, id, mark, lose, say, probes: await openProbes(worker) };
}

describe.concurrent('a Redis', () => {
  test('that has lost actions which it had acknowledged gets them again, and none that was lifted before', async ({
    expect,
    onTestFinished,
  }) => {
    const { harness, id, mark, lose, say, worker } = await openScene(onTestFinished);
    const { fp } = harness.target;
    await storeSchedule(harness, 'nightly', {}, Date.now());
    mark();
    for (const line of [
      `pause ${id} --reason hold`,
      'stop-all --reason incident',
      'target limit 9/s,999/day',
      'schedule pause nightly',
    ])
      await say(line);
    const sent = await quiet(harness);
    await seenByWorker(harness);
    await lose();
    expect(await harness.runIs('paused again', ({ state }) => state === 'paused')).toMatchObject({
      by: 'operator',
      who: 'ana',
      reason: 'hold',
    });
    const stop = await until('the stop is back', async () => (await readStops(harness.redis, fp)).target);
    expect(stop).toMatchObject({ who: 'ana', reason: 'incident' });
    const { limit } = await until('the limit is back', async () => {
      const read = await readLimit(harness.redis, fp);
      return read.limit === null ? null : read;
    });
    expect(limit).toMatchObject({ rate: parseRate('9/s,999/day'), who: 'ana' });
    const isPaused = async () => (await readSchedule(harness.redis, fp, 'nightly'))?.state === 'paused';
    await until('the schedule is paused', isPaused);
    await until('it says what is in force', () => worker.stderr.includes('these actions are in force'));
    expect(harness.sandbox.seen.length).toBe(sent);

    for (const line of ['start-all', `resume ${id}`]) await say(line);
    await until('negative control: it goes on', () => harness.sandbox.seen.length > sent + 5);
    await seenByWorker(harness);
    mark();
    await harness.redis.set('a', 'write');
    await lose();
    const { length } = harness.sandbox.seen;
    await until('it goes on', () => harness.sandbox.seen.length > length + 5);

    mark();
    await say(`cancel ${id} --yes`);
    const last = await quiet(harness);
    await seenByWorker(harness);
    await lose();
    expect(await harness.runIs('cancelled again', ({ state }) => state === 'cancelled')).toMatchObject({ who: 'ana' });
    expect(harness.sandbox.seen.length).toBe(last);
    expect(worker.stderr).toContain('an action that Redis has lost is written again');
  });

  test('that was flushed makes its workers not ready until somebody has looked', async ({ expect, onTestFinished }) => {
    const { harness, worker, probes, id, say } = await openScene(onTestFinished);
    const { fp } = harness.target;
    await storeSchedule(harness, 'nightly', {}, Date.now());
    await say('stop-all --reason incident');
    await seenByWorker(harness);
    expect((await probes.readiness()).status).toBe(200);
    await harness.redis.flushall();
    await until('it is not ready', async () => (await probes.readiness()).status === 503);
    expect(worker.stderr).toContain('Redis has lost data of this target');
    for (const what of ['schedule nightly', `run ${id}`])
      await until(`it names ${what}`, () => worker.stderr.includes(what));
    expect(worker.stderr).toContain('expunge target acknowledge');
    expect((await probes.scrape()).value('expunge_redis_losses')).toBeGreaterThan(0);
    await until('an event says so', async () => {
      const events = Object.values(await harness.redis.hgetall(keys.outboxEvents(fp))).map((event) =>
        JSON.parse(event),
      );
      return events.some(({ type }) => type === 'target.data_lost');
    });
    const stop = await until('the stop is back', async () => (await readStops(harness.redis, fp)).target);
    expect(stop).toMatchObject({ who: 'ana', reason: 'incident' });
    expect((await say('target acknowledge --reason seen')).stderr).toContain('acknowledged');
    await until('it is ready', async () => (await probes.readiness()).status === 200);
    expect((await say('target acknowledge')).stderr).toContain('nothing to acknowledge');
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

/** The worker looks at all actions every few looks; it has then looked after this. */
async function seenByWorker({ redis, target }: Harness): Promise<void> {
  const looked = await redis.hget(keys.witness(target.fp), 'looks');
  await until(
    'the worker has looked',
    async () => Number(await redis.hget(keys.witness(target.fp), 'looks')) > Number(looked) + 6,
  );
}
