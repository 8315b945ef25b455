import { type RedisClient, readClock } from './client.ts';

/** The clock of Redis, in ms since 1970, according to the last `sync`. */
export type RedisClock = { now(): number; sync(): Promise<void> };

/**
 * Follows the clock of the server that holds a key. Before the first `sync` it is the clock of this machine. `sync` throws if Redis does not answer.
 */
export function openRedisClock(redis: RedisClient, key: string): RedisClock {
  let aheadMs = 0;
  return {
    now: () => Math.round(Date.now() + aheadMs),
    sync: async () => {
      aheadMs = (await readClock(redis, key)) - Date.now();
    },
  };
}
