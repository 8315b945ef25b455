import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { unlinkRun } from '../../src/ledger/end-run.ts';
import { readRun } from '../../src/ledger/run.ts';
import { targetOf } from '../../src/model/target.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { keys } from '../../src/redis/keys.ts';
import { listRuns } from './list-runs.ts';
import { openTestRedis } from './redis.ts';

/** Removes what Redis holds of the runs against a base URL, of all accounts, and their queues. */
export async function forgetTarget(baseUrl: string, redis?: Redis): Promise<void> {
  if (!redis) return withTestRedis((own) => forgetTarget(baseUrl, own));
  const own = (await listRuns(redis)).filter((run) => run.baseUrl === baseUrl);
  for (const run of await Promise.all(own.map(({ id }) => readRun(redis, id)))) if (run) await unlinkRun(redis, run);
  const noted = (await redis.zrange(keys.targets, 0, '-1')).filter((name) => JSON.parse(name)[0] === baseUrl);
  if (noted.length > 0) await redis.zrem(keys.targets, ...noted);
  const accounts = new Set(['', ...own.map(({ account }) => account), ...noted.map((name) => JSON.parse(name)[1])]);
  for (const account of accounts) await forgetKeys(redis, `*${targetOf(baseUrl, account).fp}*`);
}

/** Removes the keys of this pattern. */
export async function forgetKeys(redis: Redis, pattern: string): Promise<void> {
  for await (const found of redis.scanStream({ match: pattern, count: 1_000 }))
    if ((found as string[]).length > 0) await redis.unlink(...(found as string[]));
}

/** Lets a run stand as a kill between its last answer and its report leaves it. */
export function forgetDelivery(run: string): Promise<void> {
  return withTestRedis(async (redis) => {
    await redis.hdel(keys.run(run), 'delivered', 'reportIn', 'isExpiring');
    await redis.persist(keys.manifest(run, 0));
  });
}

/** The keys of a run that stay for ever. */
export function lastingKeys(run: string): Promise<string[]> {
  return withTestRedis(async (redis) => {
    const names = await redisKeysWith(`{${run}}`);
    const left = await Promise.all(names.map((name) => redis.pttl(name)));
    return names.filter((_, i) => left[i] === -1);
  });
}

/** A key is kept for so long from now on, but for the minute at most that a test needs to come to it. */
export async function expectKept(redis: RedisClient, key: string, ms: number): Promise<void> {
  const leftMs = await redis.pttl(key);
  expect(leftMs, key).toBeGreaterThan(ms - 60_000);
  expect(leftMs, key).toBeLessThanOrEqual(ms);
}

/** The keys whose name holds this text. */
export function redisKeysWith(text: string): Promise<string[]> {
  return withTestRedis(async (redis) => {
    const found: string[] = [];
    for await (const some of redis.scanStream({ match: `*${text}*`, count: 1_000 })) found.push(...some);
    return found;
  });
}

async function withTestRedis<T>(body: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = await openTestRedis();
  try {
    return await body(redis);
  } finally {
    redis.disconnect();
  }
}
