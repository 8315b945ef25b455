import type { Route } from '../http/send-once.ts';
import { sendOnce } from '../http/send-once.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { acquireLease } from '../redis/lease.ts';
import type { Schedule } from './schedule.ts';

const idleMs = 10_000;
const givenUpAfterMs = 86_400_000;

type HeartbeatDeps = { redis: RedisClient; fp: string; route: Route; stop: AbortSignal; now: () => number };

/**
 * Calls the heartbeat URL of a schedule whose last occurrence ended well, and records the call. After a crash, it may be called twice for an
 * occurrence. Returns '' if the call succeeded or none is due. Otherwise returns the reason of the failure, and the caller repeats it. After a day
 * the heartbeat is dropped.
 */
export async function sendHeartbeat(deps: HeartbeatDeps, { name, heartbeat, heartbeatDue }: Schedule): Promise<string> {
  if (heartbeatDue === null) return '';
  const { redis, fp, route, now } = deps;
  const lease = await acquireLease(redis, keys.scheduleHeartbeat(fp, name), deps.stop);
  if (lease === null) return '';
  try {
    const isOld = now() - heartbeatDue > givenUpAfterMs;
    const problem = heartbeat === '' || isOld ? '' : await call(heartbeat, route, lease.signal);
    if (problem === '') await redis.eval(sentLua, 1, keys.schedule(fp, name), heartbeatDue);
    return problem;
  } finally {
    await lease.release();
  }
}

// KEYS 1 schedule  ARGV 1 the heartbeat that was sent: a later occurrence may have ended since
const sentLua = `if redis.call('HGET', KEYS[1], 'heartbeatDue') == ARGV[1] then redis.call('HDEL', KEYS[1], 'heartbeatDue') end`;

async function call(url: string, route: Route, signal: AbortSignal): Promise<string> {
  try {
    const status = await sendOnce(route, { method: 'GET', url, headers: {}, body: null, idleMs, signal });
    return status >= 200 && status < 300 ? '' : `it answers ${status}`;
  } catch (error) {
    return (error as Error).message;
  }
}
