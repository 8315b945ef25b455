import { describe, expect, onTestFinished, test } from 'vitest';
import {
  chooseRuns,
  findOverlappingRuns,
  isAnyRun,
  isIdle,
  type RunChoice,
  readRunning,
} from '../../../src/ledger/list-runs.ts';
import { readRun, runStates, schemaVersion } from '../../../src/ledger/run.ts';
import { stdinName } from '../../../src/model/row.ts';
import { targetOf } from '../../../src/model/target.ts';
import { keys } from '../../../src/redis/keys.ts';
import { listRuns } from '../../support/list-runs.ts';
import { stateOf, writeManyRuns } from '../../support/many-runs.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { writeTestRun } from './lone-run.ts';

const all = { sort: 'created', limit: Number.POSITIVE_INFINITY } as const;

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
    await redis.hset(keys.run('20260101-0000-00012'), { files: JSON.stringify(['other.csv', 'list-12.csv']) });
    expect(await choose({ list: 'list-12.' })).toEqual([12]);
    expect(await choose({ by: 'user-1@', limit: 1 })).toEqual([37]);
    expect(await choose({ sort: 'failed', limit: 3 })).toEqual([39, 38, 37]);
    expect(await choose({ sort: 'pending', limit: 1 })).toEqual([0]);
    expect((await chooseRuns(redis, { ...all, limit: 40 })).hasMore).toBe(false);
    expect((await chooseRuns(redis, { ...all, limit: 39 })).hasMore).toBe(true);
  });

  test('is in the order of what was changed last, what has most rows, and what has most failures', async () => {
    const redis = (await openOwnRedis(onTestFinished)).connect();
    const start = await writeManyRuns(redis, 8);
    const record = (n: number) => keys.run(`20260101-0000-0000${n}`);
    const first = async (sort: RunChoice['sort']) => ids((await chooseRuns(redis, { sort, limit: 3 })).runs);
    expect(await first('changed')).toEqual([7, 6, 5]);
    await redis.hset(record(1), { changedAt: start + 9_000 });
    await redis.hset(record(2), { endedAt: start + 10_000 });
    expect(await first('changed')).toEqual([2, 1, 7]);
    await redis.hset(record(3), { rows: 100_003 });
    await redis.hset(record(4), { rows: 100_002, unknown: 100_000 });
    await redis.hset(record(5), { rows: 100_001, deleted: 90_000 });
    expect(await first('rows')).toEqual([3, 4, 5]);
    expect(await first('failed')).toEqual([4, 7, 6]);
    expect((await first('pending'))[0]).toBe(3);
  });

  test('by nothing that any run has is empty', async () => {
    const redis = (await openOwnRedis(onTestFinished)).connect();
    await writeManyRuns(redis, 3);
    for (const choice of [{ target: 'api-9' }, { list: 'other' }, { by: 'user-9' }, { states: [] }])
      expect(await chooseRuns(redis, { ...all, ...choice })).toEqual({ runs: [], hasMore: false });
    expect(await chooseRuns((await openOwnRedis(onTestFinished)).connect(), all)).toEqual({ runs: [], hasMore: false });
  });

  test('shows of each run what a list of runs needs', async () => {
    const redis = (await openOwnRedis(onTestFinished)).connect();
    const start = await writeManyRuns(redis, 4);
    const [{ counts, ...newest }] = (await listRuns(redis)) as [Awaited<ReturnType<typeof listRuns>>[number]];
    expect(newest).toMatchObject({ state: stateOf(3), baseUrl: 'https://api-3.example.com', files: ['list-3.csv'] });
    expect(newest).toMatchObject({ createdBy: 'user-0@machine', rows: 100_000, ids: 100_000, attempts: 3 });
    expect(newest).toMatchObject({ createdAt: start + 3_000, changedAt: start + 3_000, activeMs: 1_000 });
    expect(counts).toMatchObject({ failed: 3, deleted: 0 });
    const more = { reason: 'OPS-1', who: 'ana', halt: 'forbidden', activeUntil: start, protectedRead: 30 };
    await redis.hset(keys.run(newest.id), { ...more, tallied: 1, expectAbsent: 1, isExpiring: 1 });
    expect((await listRuns(redis))[0]).toMatchObject({ ...more, tallied: true, expectAbsent: true, isExpiring: true });
  });

  test('holds runs whose rate another version wrote, and leaves out those that have expired', async () => {
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

describe('runs of the same target with a file name in common', () => {
  const target = targetOf('https://api-1.example.com', '');

  test('are found unless they are finalized, however the name is written', async () => {
    const redis = (await openOwnRedis(onTestFinished)).connect();
    await writeManyRuns(redis, 12); // 1, 6 and 11 are of this target
    const overlapping = async (...files: string[]) =>
      (await findOverlappingRuns(redis, target, { files })).map(({ id }) => Number(id.slice(-5)));
    expect([stateOf(1), stateOf(6), stateOf(11)]).toEqual(['planned', 'cancelling', 'paused']);
    expect(await overlapping('list-1.csv', 'list-6.csv', 'list-2.csv')).toEqual([6, 1]);
    expect(await overlapping('./lists/../list-11.csv')).toEqual([11]);
    expect(await overlapping('list-2.csv')).toEqual([]); // of another target
    const record = keys.run('20260101-0000-00001');
    await redis.hset(record, { files: JSON.stringify(['other.csv', './list-1.csv']) });
    expect(await overlapping('list-1.csv')).toEqual([1]);
    await redis.hset(record, { account: 'b' });
    expect(await overlapping('list-1.csv')).toEqual([]);
    await redis.hset(record, { account: '', state: 'completed' });
    expect(await overlapping('list-1.csv')).toEqual([]);
  });

  test('are none because both read stdin', async () => {
    const redis = (await openOwnRedis(onTestFinished)).connect();
    await writeManyRuns(redis, 2);
    await redis.hset(keys.run('20260101-0000-00001'), { files: JSON.stringify([stdinName]) });
    expect(await findOverlappingRuns(redis, target, { files: [stdinName] })).toEqual([]);
  });
});

test('no run is idle but one that is neither running nor being cancelled', async () => {
  const redis = (await openOwnRedis(onTestFinished)).connect();
  expect([await isIdle(redis), await isAnyRun(redis, [...runStates])]).toEqual([true, false]);
  await writeManyRuns(redis, runStates.length);
  expect(await isIdle(redis)).toBe(false);
  for (const [n, state] of runStates.entries()) {
    await redis.del(keys.runs);
    await redis.zadd(keys.runs, n, `20260101-0000-0000${n}`);
    expect([state, await isIdle(redis)]).toEqual([state, state !== 'running' && state !== 'cancelling']);
    expect([await isAnyRun(redis, [state]), await isAnyRun(redis, [])]).toEqual([true, false]);
  }
  await redis.del(keys.runs);
  await writeManyRuns(redis, 6);
  expect(await isAnyRun(redis, ['preparing'])).toBe(true); // the oldest
});

test('the running runs of a target are those of this version that can be read', async () => {
  const redis = (await openOwnRedis(onTestFinished)).connect();
  await writeManyRuns(redis, 19); // 2, 10 and 18 are running
  const ids = [1, 2, 3, 10, 18, 19].map((n) => `20260101-0000-${String(n).padStart(5, '0')}`);
  await redis.sadd(keys.targetRuns('fp'), ...ids);
  expect((await readRunning(redis, 'fp')).toSorted()).toEqual([ids[1], ids[3], ids[4]]);
  await redis.hset(keys.run(ids[1]!), { schema: schemaVersion + 1 });
  await redis.del(keys.run(ids[3]!));
  await redis.set(keys.run(ids[3]!), 'not a hash');
  expect(await readRunning(redis, 'fp')).toEqual([ids[4]]);
});
