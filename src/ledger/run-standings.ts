import { readTargetState } from '../limiter/read-target.ts';
import { readStops } from '../limiter/stop.ts';
import { type Target, targetOf } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { probeWritesOfOthers } from '../redis/writes.ts';
import { readNextAttempt } from './backlog.ts';
import { type ListedRun, readListed } from './list-runs.ts';
import { findStandings, type Reading, type Standing, seenFromOutside } from './standing.ts';

/** Lists what holds a run back, in the order of `causes`. */
export type StandingsOf = (run: ListedRun) => Standing[];

/** The facts about a target that do not depend on its runs. */
export type AroundTarget = Pick<Reading, 'limiter' | 'stops' | 'refused'>;

/** Reads these facts, and probes whether Redis accepts writes. */
export async function readAround(redis: RedisClient, fp: string): Promise<AroundTarget> {
  const reads = [readTargetState(redis, fp), readStops(redis, fp), probeWritesOfOthers(redis, fp)] as const;
  const [limiter, stops, refused] = await Promise.all(reads);
  return { limiter, stops, refused };
}

/**
 * Reads what holds these runs back, and each of their targets once, however many runs it has. A command that has ended is noticed once no process
 * calls for its target any more, within 5 s.
 */
export async function readStandings(redis: RedisClient, runs: readonly ListedRun[]): Promise<StandingsOf> {
  const moving = runs.filter(({ state }) => state === 'running');
  const around = new Map([...new Set(moving.map(fpOf))].map((fp) => [fp, readAround(redis, fp)]));
  const reads = moving.map(async (run) => {
    const [shared, nextTryAt] = await Promise.all([around.get(fpOf(run))!, readNextAttempt(redis, run.id)]);
    return [run.id, { ...shared, nextTryAt }] as const;
  });
  const known = new Map(await Promise.all(reads));
  return (run) =>
    findStandings({ ...seenFromOutside, ...(known.get(run.id) ?? nothingKnown), now: Date.now(), target: run, run });
}

function fpOf({ baseUrl, account }: ListedRun): string {
  return targetOf(baseUrl, account).fp;
}

/** What holds a target back, apart from its runs. Pure but for the clock. */
export function targetStandings(target: Target, around: AroundTarget): Standing[] {
  return findStandings({ ...seenFromOutside, ...around, now: Date.now(), target, run: null });
}

/** A run that is not running needs no facts: its state is the whole reason. */
const nothingKnown: AroundTarget = {
  limiter: null,
  stops: { target: null, processes: [], tokenless: [], alive: 0 },
  refused: '',
};

/**
 * Reads the first cause that holds back a target (under ''), and each of its detached runs that has not ended. Without a cause, the entry is missing.
 * `around`: the facts about the target, as they were just read.
 */
export async function readHeld(
  redis: RedisClient,
  target: Target,
  around: AroundTarget,
): Promise<Map<string, Standing>> {
  const runs = await readListed(redis, await redis.smembers(keys.targetRuns(target.fp)));
  const standings = await readStandings(redis, runs);
  const held = [
    ['', targetStandings(target, around)[0]] as const,
    ...runs.map((run) => [run.id, standings(run)[0]] as const),
  ];
  return new Map(held.flatMap(([key, standing]) => (standing === undefined ? [] : [[key, standing]])));
}
