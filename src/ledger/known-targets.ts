import type { TargetStops } from '../limiter/stop.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { RunState } from './run.ts';

/** A target and the facts that a command for all of it needs: its unfinished runs by state, and its processes with their stops. */
export type KnownTarget = Target & { live: Partial<Record<RunState, number>>; stops: TargetStops };

const forgottenAfterMs = 90 * 86_400_000;

/** Records for 90 days that a target has a worker, a schedule or a stop, so that it can be found without a run. Repeating it renews the time. */
export async function noteTarget(redis: RedisClient, target: Target, now: number): Promise<void> {
  await redis.zadd(keys.targets, now, JSON.stringify([target.baseUrl, target.account]));
  await redis.zremrangebyscore(keys.targets, 0, now - forgottenAfterMs);
}

/** The number of its runs that are not finalized. */
export function liveRuns({ live }: KnownTarget): number {
  return Object.values(live).reduce((sum, runs) => sum + runs, 0);
}

/** Whether a target has unfinished runs or live processes. */
export function isLive(target: KnownTarget): boolean {
  return liveRuns(target) + target.stops.alive > 0;
}
