import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** Under which name the end of any detached run of the target is remembered, whoever started it. */
export const anyRun = '';

/** Remembers when a run of a schedule, or any run, was last completed, in ms since 1970. Repeating it, and telling of an older one, changes nothing. */
export async function noteCompleted(redis: RedisClient, fp: string, of: string, endedAt: number): Promise<void> {
  const known = Number((await redis.hget(keys.completed(fp), of)) ?? 0);
  if (endedAt > known) await redis.hset(keys.completed(fp), of, endedAt);
}

/** When a run of each schedule that there is was last completed, in ms since 1970; `anyRun` for all together. */
export async function readCompleted(redis: RedisClient, fp: string): Promise<Record<string, number>> {
  const [hash, schedules] = await Promise.all([redis.hgetall(keys.completed(fp)), redis.smembers(keys.schedules(fp))]);
  const known = Object.entries(hash).filter(([of]) => of === anyRun || schedules.includes(of));
  return Object.fromEntries(known.map(([of, at]) => [of, Number(at)]));
}
