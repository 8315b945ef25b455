import type { RedisClient } from './client.ts';

/**
 * The values of keys of one run, null for what is missing, in one round trip. Each key by itself: while a slot of a cluster moves to
 * another server, MGET would wait until the last key is there.
 */
export function readValues(redis: RedisClient, keys: readonly string[]): Promise<(Buffer | null)[]> {
  return Promise.all(keys.map((key) => redis.getBuffer(key)));
}
