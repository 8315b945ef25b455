import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { readClock } from '../redis/read-clock.ts';

/** When the next ids are tried again (ms since 1970 by our clock), if all chunks that are left wait for that; else null. Only reads. */
export async function readNextTry(redis: RedisClient, run: string): Promise<number | null> {
  const [now, open, [, due]] = await Promise.all([
    readClock(redis, keys.later(run)),
    redis.hlen(keys.open(run)),
    redis.zrange(keys.later(run), 0, '0', 'WITHSCORES'),
  ]);
  return open > 0 || due === undefined ? null : Date.now() + Number(due) - now;
}
