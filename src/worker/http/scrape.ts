import { type Backlog, readBacklog } from '../../ledger/backlog.ts';
import { readSuccesses } from '../../ledger/end-run.ts';
import { readAround, readHeld } from '../../ledger/run-standings.ts';
import type { Standing } from '../../ledger/standing.ts';
import type { TargetState } from '../../limiter/read-target.ts';
import type { Target } from '../../model/target.ts';
import { type RedisClient, readClock } from '../../redis/client.ts';
import { keys } from '../../redis/keys.ts';
import { latenessMs } from '../../schedule/decide.ts';
import { toOccurrenceResult } from '../../schedule/schedule.ts';
import { listSchedules, readHistory } from '../../schedule/schedule-store.ts';
import type { Service } from '../service.ts';
import { singleFlight } from './single-flight.ts';

/** The facts of one scrape: the process, and its target as Redis has it. Null if Redis didn't answer in time. */
export type Scrape = {
  build: Build;
  service: Service;
  redis: {
    backlog: Backlog;
    successes: Successes;
    schedules: ScheduleSample[];
    undelivered: number;
    limiter: TargetState | null;
    held: Map<string, Standing>; // see `readHeld`
  } | null;
  /** The target that this process sends to. */
  target: Target;
};

/** The time when a run last went well, in ms since 1970, by schedule; see `readSuccesses`. */
type Successes = Record<string, number>;

/** The state of a schedule, the result of its last occurrence (null = it has had none), and how late its next one is. */
type ScheduleSample = {
  name: string;
  state: ScheduleState;
  result: ReturnType<typeof toOccurrenceResult> | null;
  lateMs: number;
};

type ScheduleState = (typeof scheduleStates)[number];

export const scheduleStates = ['active', 'paused', 'paused_by_guard'] as const;

export type Build = { version: string; revision: string };

type ScrapeOptions = {
  build: Build;
  service: Service;
  redis: RedisClient;
  target: Target;
  /** Monotonic ms. */
  clock: () => number;
  /** Returns ms since 1970. */
  now: () => number;
};

/** Several scrapers cost Redis no more than one, and a Redis that hangs delays a scrape by 1 s at most. */
const bounds = { freshMs: 3_000, timeoutMs: 1_000 };

/** Returns a function that reads the facts of one scrape. It never rejects. */
export function openScrape({ build, service, redis, target, clock, now }: ScrapeOptions): () => Promise<Scrape> {
  const { fp } = target;
  const readTarget = async () => {
    const [backlog, successes, schedules, undelivered, { limiter, held }] = await Promise.all([
      readBacklog(redis, fp, await readClock(redis, keys.targetRuns(fp))),
      readSuccesses(redis, fp),
      readSchedules(redis, fp, now()),
      redis.zcard(keys.undelivered(fp)),
      readAround(redis, fp).then(async (around) => ({ ...around, held: await readHeld(redis, target, around) })),
    ]);
    return { backlog, successes, schedules, undelivered, limiter, held };
  };
  const askTarget = singleFlight(readTarget, { ...bounds, clock });
  return async () => ({ build, service, target, redis: await askTarget() });
}

async function readSchedules(redis: RedisClient, fp: string, now: number): Promise<ScheduleSample[]> {
  const all = await listSchedules(redis, fp);
  const histories = await Promise.all(all.map(({ name }) => readHistory(redis, fp, name)));
  return all.map((schedule, n) => {
    const { name, state, pausedBy } = schedule;
    const last = histories[n]![0];
    const pausedState = pausedBy === '' ? 'paused' : 'paused_by_guard';
    return {
      name,
      state: state === 'active' ? 'active' : pausedState,
      result: last === undefined ? null : toOccurrenceResult(last),
      lateMs: latenessMs(schedule, now),
    };
  });
}
