import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  expireRun,
  hasRemains,
  markDelivered,
  removeIfUnstarted,
  removeRemains,
  removeRun,
} from '../../../src/ledger/end-run.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openOwnRedis } from '../../support/own-redis.ts';

let redis: RedisClient; // of its own: whoever listed runs meanwhile would meet these, which are none
let id: string;
const atEnd: (() => Promise<void>)[] = [];
beforeAll(async () => {
  redis = (await openOwnRedis((task) => void atEnd.push(task))).connect();
});
afterAll(async () => {
  for (const task of atEnd) await task();
});
beforeEach(() => {
  id = `test-${randomUUID()}`;
});

const chunks = 260; // with their ledgers and the blocks more keys than one round trip takes
const blocks = 3;
const day = 86_400_000;

const parts = () => [
  ...Array.from({ length: chunks }, (_, n) => [keys.manifest(id, n), keys.ledger(id, n)]).flat(),
  ...Array.from({ length: blocks }, (_, n) => keys.settled(id, n)),
];
const small = () =>
  [
    ...[keys.open, keys.deferred, keys.holders, keys.details, keys.measures, keys.history, keys.historyEvents],
    ...[keys.paceMembers, keys.paceQuotas, keys.refusals, keys.audit],
  ].map((keyOf) => keyOf(id));

/** Every key that a run can have, each with some value. */
async function writeKeys(fields: Record<string, string | number> = {}): Promise<Run> {
  await redis.hset(keys.run(id), { state: 'completed', chunks, blocks, list: id, fp: id, keepMs: 60_000, ...fields });
  for (const key of [...parts(), ...small(), keys.list(id)]) await redis.set(key, id);
  await redis.zadd(keys.runs, 1, id);
  await redis.sadd(keys.targetRuns(id), id);
  return (await readRun(redis, id))!;
}

const left = () => redis.exists(...parts(), ...small(), keys.run(id));

test('a removed run leaves nothing behind, not even its name', async () => {
  await removeRun(redis, await writeKeys());
  expect(await left()).toBe(0);
  expect(await redis.exists(keys.list(id), keys.targetRuns(id))).toBe(0);
  expect(await redis.zscore(keys.runs, id)).toBeNull();
});

test.each([
  ['is removed while it is being written', { state: 'preparing', createdBy: 'schedule nightly on here' }, 0],
  ['is removed before it is started', { state: 'planned', createdBy: 'schedule nightly on there' }, 0],
  ['stays once it is started', { state: 'running', createdBy: 'schedule nightly on here' }, 1],
  ['stays if somebody has taken it over', { state: 'preparing', createdBy: 'ana' }, 1],
  ['stays if it is that of another one', { state: 'planned', createdBy: 'schedule nightly-2 on here' }, 1],
])('a run that a schedule has written %s', async (_, { state, createdBy }, stays) => {
  const run = await writeKeys({ state: 'planned' }); // as it was when it was read
  await redis.hset(keys.run(id), { state, createdBy });
  await removeIfUnstarted(redis, run, 'schedule nightly on ');
  expect(await left()).toBe(stays * (parts().length + small().length + 1));
  expect(await redis.exists(keys.list(id), keys.targetRuns(id))).toBe(2 * stays);
});

test.each([
  ['somebody has completed its list', { state: 'planned', edits: 1 }],
  ['it was started', { state: 'running', changes: 1 }],
  ['it has ended', { state: 'completed', changes: 2 }],
  ['somebody else has taken it over', { createdBy: 'ben', edits: 1 }],
])('a run that is to be removed stays with all its keys if %s since it was shown', async (_, fields) => {
  const shown = await writeKeys({ state: 'preparing', createdBy: 'ana' });
  await redis.hset(keys.run(id), fields);
  expect(await removeRun(redis, shown)).toBe(false);
  expect(await left()).toBe(parts().length + small().length + 1);
  expect(await redis.exists(keys.list(id), keys.targetRuns(id))).toBe(2);
  expect(await removeRun(redis, (await readRun(redis, id))!)).toBe(true); // shown anew, it goes
  expect(await left()).toBe(0);
});

test('a run that is to be removed goes, whatever was counted or delivered since it was shown', async () => {
  const shown = await writeKeys();
  await redis.hset(keys.run(id), { delivered: 1, late: 3 });
  expect(await removeRun(redis, shown)).toBe(true);
  expect(await removeRun(redis, shown)).toBe(true); // a repetition is harmless
  expect(await left()).toBe(0);
});

test('a run that is removed or expires leaves its list to another run that has it now', async () => {
  const run = await writeKeys();
  await redis.set(keys.list(id), 'another');
  await expireRun(redis, run);
  expect(await redis.pttl(keys.list(id))).toBe(-1);
  await removeRun(redis, run);
  expect(await redis.get(keys.list(id))).toBe('another');
});

test.each([
  ['as long as --keep says once its report is delivered', { delivered: 1 }, 60_000],
  ['a day at least until its report is delivered', {}, day],
  ['longer than a day if --keep says so', { keepMs: 2 * day }, 2 * day],
])('all keys of a finalized run are kept %s', async (_, fields, ms) => {
  await expireRun(redis, await writeKeys(fields));
  const all = [...parts(), ...small(), keys.run(id), keys.list(id)];
  const times = await Promise.all(all.map((key) => redis.pttl(key)));
  expect(times.filter((time) => time > ms || time < ms - 30_000)).toEqual([]);
  expect(await readRun(redis, id)).toMatchObject({ isExpiring: true });
});

test('neither expiry nor delivery brings the record of an expired run back', async () => {
  const run = await writeKeys();
  await redis.del(keys.run(id));
  await expireRun(redis, run);
  await markDelivered(redis, run, 'reports');
  expect(await redis.exists(keys.run(id))).toBe(0);
});

test('a delivered run says when, and where its report is', async () => {
  const before = Date.now();
  await markDelivered(redis, await writeKeys(), 'reports/one');
  const { delivered, reportIn } = (await readRun(redis, id))!;
  expect([delivered >= before, delivered <= Date.now(), reportIn]).toEqual([true, true, 'reports/one']);
});

test('what a run left whose record has expired is removed to its last chunk', async () => {
  await writeKeys();
  await redis.del(keys.run(id));
  expect(await hasRemains(redis, id)).toBe(true);
  await removeRemains(redis, id);
  expect([await hasRemains(redis, id), await left()]).toEqual([false, 0]);
});

test('what an interrupted removal leaves can be found without the record', async () => {
  const run = await writeKeys();
  const refused = {
    eval: (...args: Parameters<RedisClient['eval']>) => redis.eval(...args),
    srem: async () => 1,
    unlink: async (key: string) => (key === keys.ledger(id, 0) ? Promise.reject(new Error('away')) : redis.unlink(key)),
  };
  await expect(removeRun(refused as unknown as RedisClient, run)).rejects.toThrow('away');
  expect(await hasRemains(redis, id)).toBe(true);
});
