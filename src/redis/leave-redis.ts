import type { RedisAddress } from './address.ts';
import { oneShot } from './probe.ts';
import { withStartLock } from './start-lock.ts';
import { isAlone, stopInOrder } from './stop-redis.ts';

const lockMs = 3_000;

/**
 * Call it last, with the worker's queue connections closed: stops the private Redis if no other process is connected and
 * `isIdle` says that no run is running. Never throws and takes a few seconds at most; a server that was left running in
 * doubt is found again by the next command. Does nothing for REDIS_URL.
 */
export async function leavePrivateRedis(
  { stay, options }: RedisAddress,
  isIdle: () => Promise<boolean>,
): Promise<'stopped' | 'left'> {
  if (!stay) return 'left';
  const { place, presence } = stay;
  const redis = oneShot(options, 'leave');
  try {
    return await withStartLock(place.folder, lockMs, async () => {
      await redis.connect();
      if (!(await isAlone(redis)) || !(await isIdle())) return 'left';
      await stopInOrder(place, redis);
      return 'stopped';
    });
  } catch {
    return 'left';
  } finally {
    redis.disconnect();
    presence.disconnect();
  }
}
