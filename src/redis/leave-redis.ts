import type { RedisOptions } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { serverOptions } from './private/container.ts';
import { identityOf, type PrivatePlace } from './private/place.ts';
import { withStartLock } from './private/start-lock.ts';
import { isAlone, stopInOrder } from './private/stop.ts';
import { isOurs, oneShot } from './probe.ts';

const leaveLockMs = 3_000;

/**
 * Call it last, with the worker's queue connections closed: stops the private Redis if no other process is connected and
 * `isIdle` says that no run is running. Never throws and takes a few seconds at most; a server that was left running in
 * doubt is found again by the next command. Does nothing for REDIS_URL.
 */
export async function leavePrivateRedis(
  { stay }: RedisAddress,
  isIdle: () => Promise<boolean>,
): Promise<'stopped' | 'left'> {
  if (!stay) return 'left';
  const { place, presence } = stay;
  try {
    return await withStartLock(place.folder, leaveLockMs, async () => {
      const options = await serverOptions(place, process.env); // not as it was at the beginning: another server may have its port by now
      return options !== null && (await stopIfIdle(place, options, isIdle)) ? 'stopped' : 'left';
    });
  } catch {
    return 'left';
  } finally {
    presence.disconnect();
  }
}

async function stopIfIdle(
  place: PrivatePlace,
  options: RedisOptions,
  isIdle: () => Promise<boolean>,
): Promise<boolean> {
  const redis = oneShot(options, 'leave');
  try {
    await redis.connect();
    if (!(await isOurs(redis, identityOf(place))) || !(await isAlone(redis)) || !(await isIdle())) return false;
    await stopInOrder(place, redis);
    return true;
  } finally {
    redis.disconnect();
  }
}
