import { describe, expect, onTestFinished, test } from 'vitest';
import { chooseRuns, isAnyRun, listRuns, type RunChoice } from '../../../src/ledger/list-runs.ts';
import { readRun } from '../../../src/ledger/run.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { stateOf, writeManyRuns } from '../../support/many-runs.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { writeTestRun } from './lone-run.ts';

const all = { sort: 'created', limit: Number.POSITIVE_INFINITY } as const;

/** How often somebody waits for Redis: commands that are under way together count once. */
function countRoundTrips(redis: RedisClient): { readonly trips: number } {
  const seen = { trips: 0 };
  let underWay = 0;
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = ((command: Parameters<typeof send>[0], ...others: []) => {
    if (underWay++ === 0) seen.trips++;
    const done = () => void underWay--;
    command.promise.then(done, done);
    return send(command, ...others);
  }) as typeof redis.sendCommand;
  return seen;
}

describe('10,000 runs', () => {
  test('are listed in a few round trips, whatever is asked of them', async () => {
    const count = 10_000;
    const redis = (await openOwnRedis(onTestFinished)).connect();
    await writeManyRuns(redis, count);
    const seen = countRoundTrips(redis);
    const took = async (what: string, atMost: number, work: () => Promise<unknown>) => {
      const [before, startedAt] = [seen.trips, performance.now()];
      await work();
      console.log(`${what}: ${seen.trips - before} round trips, ${Math.round(performance.now() - startedAt)} ms`);
      expect(seen.trips - before, what).toBeLessThanOrEqual(atMost);
    };
    await took('all of them', 15, async () => expect(await listRuns(redis)).toHaveLength(count));
    await took('the newest 50', 2, async () =>
      expect((await chooseRuns(redis, { ...all, limit: 50 })).runs).toHaveLength(50),
    );
    await took('those with most failures', 15, () => chooseRuns(redis, { sort: 'failed', limit: 50 }));
    await took('whether one is running', 15, () => isAnyRun(redis, []));
  });
});

describe('a choice of runs', () => {
  const ids = (runs: readonly { id: string }[]) => runs.map(({ id }) => Number(id.slice(-5)));

  test('is by state, time, target, list and submitter, in the order that was asked for', async () => {
    const redis = (await openOwnRedis(onTestFinished)).connect();
    const start = await writeManyRuns(redis, 40);
    const choose = async (choice: Partial<RunChoice>) => ids((await chooseRuns(redis, { ...all, ...choice })).runs);
    expect(await choose({})).toEqual(Array.from({ length: 40 }, (_, n) => 39 - n));
    const paused = (await chooseRuns(redis, { ...all, states: ['paused', 'halted'] })).runs;
    expect(new Set(paused.map(({ state }) => state))).toEqual(new Set(['paused', 'halted']));
    expect(paused).toHaveLength([...Array(40).keys()].filter((n) => ['paused', 'halted'].includes(stateOf(n))).length);
    expect(await choose({ since: start + 37_000 })).toEqual([39, 38, 37]);
    expect(await choose({ target: 'API-3', limit: 2 })).toEqual([38, 33]);
    expect(await choose({ list: 'list-12.' })).toEqual([12]);
    expect(await choose({ by: 'user-1@', limit: 1 })).toEqual([37]);
    expect(await choose({ sort: 'failed', limit: 3 })).toEqual([39, 38, 37]);
    expect(await choose({ sort: 'pending', limit: 1 })).toEqual([0]);
    expect((await chooseRuns(redis, { ...all, limit: 40 })).hasMore).toBe(false);
    expect((await chooseRuns(redis, { ...all, limit: 39 })).hasMore).toBe(true);
  });

  test('holds runs whose rate another release wrote, and leaves out those that have expired', async () => {
    const redis = (await openOwnRedis(onTestFinished)).connect();
    await writeManyRuns(redis, 3);
    const [newest, , oldest] = await listRuns(redis);
    await redis.hset(keys.run(newest!.id), 'rate', '200');
    await redis.del(keys.run(oldest!.id));
    const runs = await listRuns(redis);
    expect(ids(runs)).toEqual([2, 1]);
    expect(await readRun(redis, newest!.id)).toMatchObject({ rate: null, unreadRate: '200' });
    expect(await redis.zcard(keys.runs)).toBe(2);
  });

  test('leaves no name of an expired run in the registry once another run is made, though nobody lists them', async () => {
    const redis = (await openOwnRedis(onTestFinished)).connect();
    await writeManyRuns(redis, 3);
    const [, middle, oldest] = await listRuns(redis);
    await redis.del(keys.run(middle!.id), keys.run(oldest!.id));
    await writeTestRun(redis, [1]);
    expect(await redis.zcard(keys.runs)).toBe(2);
  });
});
