import { readTargetState, type TargetState } from '../limiter/read-target.ts';
import { readStops, type TargetStops } from '../limiter/stop.ts';
import { type Target, targetOf } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type ListedRun, readListed } from './list-runs.ts';
import { type Standing, seenFromOutside, standingsOf } from './standing.ts';

/** What holds a run back, told first what is first in `causes`. */
export type StandingsOf = (run: ListedRun) => Standing[];

/**
 * Reads what holds these runs back: each of their targets once, however many runs it has. Whether ids wait for a retry is not read. A command
 * that has ended is noticed once no process calls for its target any more, within 5 s.
 */
export async function readStandings(redis: RedisClient, runs: readonly ListedRun[]): Promise<StandingsOf> {
  const moving = runs
    .filter(({ state }) => state === 'running')
    .map(({ baseUrl, account }) => targetOf(baseUrl, account));
  const fps = [...new Set(moving.map(({ fp }) => fp))];
  const read = await Promise.all(fps.map((fp) => Promise.all([readTargetState(redis, fp), readStops(redis, fp)])));
  const known = new Map(fps.map((fp, i) => [fp, read[i]!]));
  return (run) => {
    const [targets, stops] = known.get(targetOf(run.baseUrl, run.account).fp) ?? [[], nobody];
    return standingsOf({ ...seenFromOutside, now: Date.now(), target: run, targets, stops, run });
  };
}

/** Reads what holds a target back, whatever its runs are. */
async function readTargetStandings(redis: RedisClient, target: Target): Promise<Standing[]> {
  const [targets, stops] = await Promise.all([readTargetState(redis, target.fp), readStops(redis, target.fp)]);
  return targetStandings(target, targets, stops);
}

/** What holds a target back, whatever its runs are. Pure but for the clock. */
export function targetStandings(target: Target, targets: readonly TargetState[], stops: TargetStops): Standing[] {
  return standingsOf({ ...seenFromOutside, now: Date.now(), target, targets, stops, run: null });
}

const nobody: TargetStops = { target: null, processes: [], tokenless: [], alive: 0 };

/** What is told first of a target (under '') and of each of its detached runs that has not ended; what is not held is missing. */
export async function readHeld(redis: RedisClient, target: Target): Promise<Map<string, Standing>> {
  const runs = await readListed(redis, await redis.smembers(keys.targetRuns(target.fp)));
  const [standings, ofTarget] = await Promise.all([readStandings(redis, runs), readTargetStandings(redis, target)]);
  const held = [['', ofTarget[0]] as const, ...runs.map((run) => [run.id, standings(run)[0]] as const)];
  return new Map(held.flatMap(([key, standing]) => (standing === undefined ? [] : [[key, standing]])));
}
