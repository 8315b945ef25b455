import { ExpungeError } from '../errors.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

const announcedMs = 86_400_000;

/** Records that a worker of a target names protected ids. It holds for a day, so that workers may be replaced meanwhile. */
export async function announceProtection(redis: RedisClient, fp: string): Promise<void> {
  await redis.set(keys.protection(fp), '1', 'PX', announcedMs);
}

/**
 * Throws GUARD for a list that is read without protected ids and left to workers of which one names some: they are meant for all that
 * it deletes, but only whoever reads a list can keep ids out of it.
 */
export async function refuseUnprotected(redis: RedisClient, fp: string, isProtected: boolean): Promise<void> {
  if (isProtected || (await redis.exists(keys.protection(fp))) === 0) return;
  throw new ExpungeError(
    'GUARD',
    'the list protects no ids, but the settings of a worker of its target do; nothing was sent',
    {
      next: 'read it where the file is: with --protect FILE, or at a worker of this target with --http',
    },
  );
}
