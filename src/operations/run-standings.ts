import type { ListedRun } from '../ledger/list-runs.ts';
import { type Standing, standingsOf } from '../ledger/standing.ts';
import { readTargetState } from '../limiter/read-target.ts';
import { readStops } from '../limiter/stop.ts';
import { targetOf } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';

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
    return standingsOf({
      now: Date.now(),
      target: run,
      targets,
      stops,
      run,
      isAbandoned: false,
      nextTryAt: null,
      away: '',
      refused: '',
      here: null,
    });
  };
}

const nobody = { target: null, processes: [], tokenless: [], alive: 0 };
