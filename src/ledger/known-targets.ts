import { readStops, type TargetStops } from '../limiter/stop.ts';
import { type Target, targetOf } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { listRuns } from './list-runs.ts';
import { isFinalized, type RunState } from './run.ts';

/** A target and the facts that a command for all of it needs: its unfinished runs by state, and its processes with their stops. */
export type KnownTarget = Target & { live: Partial<Record<RunState, number>>; stops: TargetStops };

const forgottenAfterMs = 90 * 86_400_000;

/** Records for 90 days that a target has a worker, a schedule or a stop, so that it can be found without a run. Repeating it renews the time. */
export async function noteTarget(redis: RedisClient, target: Target, now: number): Promise<void> {
  await redis.zadd(keys.targets, now, nameOf(target));
  await redis.zremrangebyscore(keys.targets, 0, now - forgottenAfterMs);
}

/** Finds every target that has a run, even an ended one, or was recorded with `noteTarget`. */
export async function knownTargets(redis: RedisClient): Promise<KnownTarget[]> {
  const [noted, runs] = await Promise.all([redis.zrange(keys.targets, 0, '-1'), listRuns(redis)]);
  const live = new Map<string, KnownTarget['live']>(noted.map((name) => [name, {}]));
  for (const run of runs) {
    const states = live.get(nameOf(run)) ?? {};
    if (!isFinalized(run.state)) states[run.state] = (states[run.state] ?? 0) + 1;
    live.set(nameOf(run), states);
  }
  return Promise.all([...live].map(([name, states]) => readKnown(redis, name, states)));
}

/** The number of its runs that are not finalized. */
export function liveRuns({ live }: KnownTarget): number {
  return Object.values(live).reduce((sum, runs) => sum + runs, 0);
}

/** Whether a target has unfinished runs or live processes. */
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
