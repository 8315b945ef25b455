import type { RedisClient } from '../../src/redis/client.ts';

/** Everything in Redis that actions could change, as a text to compare. */
export async function redisContent(redis: RedisClient): Promise<string> {
  const keys = (await redis.keys('expunge*')).filter((key) => !/:probe$|:limiter|:request:/.test(key)).sort();
  const texts = await Promise.all(keys.map(async (key) => `${key} ${await contentOf(redis, key)}`));
  return texts.join('\n');
}

/** What a key holds. The fields of hashes and the members of sets are sorted, since Redis moves them while a table of its grows. */
async function contentOf(redis: RedisClient, key: string): Promise<string> {
  const type = await redis.type(key);
  if (type === 'hash') return JSON.stringify(Object.entries(await redis.hgetall(key)).sort());
  if (type === 'set') return JSON.stringify((await redis.smembers(key)).sort());
  return (await redis.dumpBuffer(key))?.toString('hex') ?? 'gone';
}
