import { readStops, type TargetStops } from '../limiter/stop.ts';
import { type Target, targetOf } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { listRuns } from './list-runs.ts';
import { isSealed, type RunState } from './run.ts';

/** A target with what an order to all of it reaches: its live runs by state, the processes that may send to it, and what stops them. */
export type KnownTarget = Target & { live: Partial<Record<RunState, number>>; stops: TargetStops };

const forgottenAfterMs = 90 * 86_400_000;

/**
 * Remembers for 90 days that there is a worker, a schedule or a stop of a target: where it has no run, nothing else tells of it. Repeating
 * it is harmless.
 */
export async function noteTarget(redis: RedisClient, target: Target, now: number): Promise<void> {
  await redis.zadd(keys.targets, now, nameOf(target));
  await redis.zremrangebyscore(keys.targets, 0, now - forgottenAfterMs);
}

/** Every target that has a run, also one that has ended, or was noted. Only reads, in two round trips. */
export async function knownTargets(redis: RedisClient): Promise<KnownTarget[]> {
  const [noted, runs] = await Promise.all([redis.zrange(keys.targets, 0, '-1'), listRuns(redis)]);
  const live = new Map<string, KnownTarget['live']>(noted.map((name) => [name, {}]));
  for (const run of runs) {
    const states = live.get(nameOf(run)) ?? {};
    if (!isSealed(run.state)) states[run.state] = (states[run.state] ?? 0) + 1;
    live.set(nameOf(run), states);
  }
  return Promise.all([...live].map(([name, states]) => readKnown(redis, name, states)));
}

/** How many live runs an order reaches there. */
export function liveRuns({ live }: KnownTarget): number {
  return Object.values(live).reduce((sum, runs) => sum + runs, 0);
}

/** Whether an order reaches anybody there. */
export function isLive(target: KnownTarget): boolean {
  return liveRuns(target) + target.stops.alive > 0;
}

async function readKnown(redis: RedisClient, name: string, live: KnownTarget['live']): Promise<KnownTarget> {
  const [baseUrl, account] = JSON.parse(name) as [string, string];
  const target = targetOf(baseUrl, account);
  return { ...target, live, stops: await readStops(redis, target.fp) };
}

function nameOf({ baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>): string {
  return JSON.stringify([baseUrl, account]);
}
