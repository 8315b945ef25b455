import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { acquireLease, type Lease } from '../redis/lease.ts';

/** The lease of a schedule: one process at a time reconciles it. */
export type ScheduleLease = Lease & { fp: string; name: string };

/** Acquires the lease of a schedule; null if another process holds it. */
export async function leaseSchedule(
  redis: RedisClient,
  fp: string,
  name: string,
  stop: AbortSignal,
): Promise<ScheduleLease | null> {
  const lease = await acquireLease(redis, keys.scheduleLease(fp, name), stop);
  return lease && { ...lease, fp, name };
}
