import type { RedisClient } from './client.ts';

/** The clock of the server that holds this key, in ms since 1970: in a cluster each server has its own. */
export async function readClock(redis: RedisClient, key: string): Promise<number> {
  const time = (await redis.eval("return redis.call('TIME')", 1, key)) as unknown[];
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000;
}
