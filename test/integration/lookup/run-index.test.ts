import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRunIndex } from '../../../src/lookup/run-index.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openOwnRedis } from '../../support/own-redis.ts';

let redis: RedisClient; // of its own: the index is of all runs
const atEnd: (() => Promise<void>)[] = [];
beforeAll(async () => {
  redis = (await openOwnRedis((task) => void atEnd.push(task))).connect();
});
afterAll(async () => {
  for (const task of atEnd) await task();
});

/** A run of a minute of this hour; ended in that minute if its state says so. */
async function write(minute: number, state: string, baseUrl = 'https://one.example', account = ''): Promise<string> {
  const id = `20261120-19${String(minute).padStart(2, '0')}-aaaa`;
  await redis.hset(keys.run(id), { state, baseUrl, account, endedAt: state === 'completed' ? minute : '' });
  await redis.zadd(keys.runs, minute, id);
  return id;
}

test('the runs of a Redis are those that go on, those that ended last, and how many ended at all', async () => {
  const index = openRunIndex(redis);
  expect(openRunIndex(redis)).toBe(index);
  expect(await index.read()).toEqual({ active: [], recent: [], ended: 0, targets: [] });

  const ended: string[] = [];
  for (let minute = 1; minute <= 12; minute++) ended.push(await write(minute, 'completed'));
  const halted = await write(20, 'halted', 'https://two.example', 'crm');
  const running = await write(21, 'running');
  await redis.zadd(keys.targets, 1, JSON.stringify(['https://three.example', '']));
  const idsOf = (runs: { id: string }[]) => runs.map(({ id }) => id);
  const first = await index.read();
  expect(idsOf(first.active)).toEqual([running, halted]);
  expect(idsOf(first.recent)).toEqual(ended.toReversed().slice(0, 10));
  expect(first.ended).toBe(12);
  expect(first.targets.map(({ baseUrl, account }) => [baseUrl, account])).toEqual([
    ['https://three.example', ''],
    ['https://one.example', ''],
    ['https://two.example', 'crm'],
  ]);

  // What has ended never changes, so it is not read again but for the last ones; what goes on is, each time.
  await redis.hset(keys.run(ended[0]!), { state: 'running' });
  await redis.hset(keys.run(halted), { state: 'completed', endedAt: 90 });
  const second = await index.read();
  expect([idsOf(second.active), second.ended, idsOf(second.recent)[0]]).toEqual([[running], 13, halted]);

  await redis.zrem(keys.runs, halted, ended[0]!);
  const third = await index.read();
  expect([third.ended, idsOf(third.recent)[0]]).toEqual([11, ended.at(-1)]);
});
