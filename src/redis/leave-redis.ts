import type { RedisAddress } from './address.ts';
import type { RedisClient } from './client.ts';
import { clientName } from './client.ts';
import { oneShot } from './probe.ts';
import { withStartLock } from './start-lock.ts';
import { stopServer } from './stop-redis.ts';
import { waitUntil } from './wait-until.ts';

const lockMs = 3_000;
const goodbyeMs = 500; // Redis notices a closed connection a little later

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
      if (!(await waitUntil(() => isAlone(redis), goodbyeMs)) || !(await isIdle())) return 'left';
      await stopServer(place);
      return 'stopped';
    });
  } catch {
    return 'left';
  } finally {
    redis.disconnect();
    presence.disconnect();
  }
}

async function isAlone(redis: RedisClient): Promise<boolean> {
  const clients = String(await redis.client('LIST'))
    .trim()
    .split('\n');
  return clients.every((client) => client.includes(` name=${clientName}:`));
}
