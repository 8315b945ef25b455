import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** When the next ids are tried again (ms since 1970), if all chunks that are left wait for that; else null. Only reads. */
export async function readNextTry(redis: RedisClient, run: string): Promise<number | null> {
  const [open, [, due]] = await Promise.all([
    redis.hlen(keys.open(run)),
    redis.zrange(keys.later(run), 0, '0', 'WITHSCORES'),
  ]);
  return open > 0 || due === undefined ? null : Number(due);
}
