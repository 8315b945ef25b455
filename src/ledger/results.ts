import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { resultsKeptMs } from './active-time.lua.ts';
import { isFinalized, type Run, readRun, setFields } from './run.ts';

/*
 * Which runs have their results delivered, and the outcome of each delivery.
 *
 * While a worker with --results serves a target, and for a day after the last one, `keys.results` says so. If a run starts in that time, or the
 * recoverer of any worker finds it, the run is marked: `resultsWanted`. When a marked run ends, the recoverer puts it into `keys.undelivered`, and
 * workers with --results take it from there. Its keys stay until its results are delivered, at most 30 days longer than without.
 */

const wantedMs = 86_400_000;

/** Records that a worker delivers the results of a target's runs. The record is kept for a day, so that workers can be replaced in that time. */
export async function announceResults(redis: RedisClient, fp: string): Promise<void> {
  await redis.set(keys.results(fp), '1', 'PX', wantedMs);
}

export async function isDeliveryEnabled(redis: RedisClient, fp: string): Promise<boolean> {
  return (await redis.exists(keys.results(fp))) === 1;
}

/** Marks a run: its keys are kept until its results are delivered. Repeating it changes nothing. */
export async function requestDelivery(redis: RedisClient, run: string): Promise<void> {
  await setFields(redis, run, { resultsWanted: 1 });
}

type EndFacts = Pick<Run, 'state' | 'endedAt' | 'changedAt'>;

/** Names an end of a run, as results belong to one end: a halted run can be resumed and ends again. '' = it has not ended. Pure. */
export function nameEnd({ state, endedAt, changedAt }: EndFacts): string {
  if (isFinalized(state)) return `${state} ${endedAt}`;
  return state === 'halted' ? `halted ${changedAt}` : '';
}

/** Whether a run has ended and the results of that end are still to be delivered. Pure. */
export function awaitsResults(run: EndFacts & Pick<Run, 'resultsWanted' | 'resultsOf'>): boolean {
  const end = nameEnd(run);
  return run.resultsWanted && end !== '' && run.resultsOf !== end;
}

type ResultsFacts = Pick<Run, 'resultsWanted' | 'resultsIn' | 'resultsOf' | 'resultsProblem'>;

/** For `--json`: where the results of a run are, null = nowhere yet, and why. Both are null for a run whose results no worker delivers. Pure. */
export function resultsFacts(run: EndFacts & ResultsFacts): { results: string | null; results_problem: string | null } {
  if (!run.resultsWanted) return { results: null, results_problem: null };
  if (nameEnd(run) === '') return { results: null, results_problem: 'the run has not ended' };
  if (!awaitsResults(run)) return { results: run.resultsIn, results_problem: null };
  return { results: null, results_problem: run.resultsProblem || 'waiting for a worker with --results' };
}

/** The time for which the keys of a finalized run are kept, from its end or from the delivery of its results. Pure. */
export function resultsKeepMs(run: Run, keepMs: number): number {
  return awaitsResults(run) ? Math.max(keepMs, resultsKeptMs) : keepMs;
}

/** A run whose results are to be delivered; `since`: when it ended or was queued again, in ms since 1970. */
export type Undelivered = { run: string; since: number };

/** Puts a run that has ended among the runs whose results are to be delivered. Repeating it changes nothing. */
export async function queueResults(
  redis: RedisClient,
  run: Run,
  since: number = run.endedAt || run.changedAt,
): Promise<void> {
  const ms = resultsKeepMs(run, run.keepMs) + wantedMs;
  await redis.eval(queueLua, 1, keys.undelivered(run.fp), since, run.id, ms);
}

// KEYS 1 undelivered  ARGV 1 since  2 run  3 ms; the key is kept at most as long as the last of its runs
const queueLua = `
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
`;

const takenAtOnce = 1_000;

/** Reads the runs of a target whose results are to be delivered, in the order in which they ended. */
export async function readUndelivered(redis: RedisClient, fp: string): Promise<Undelivered[]> {
  const found = await redis.zrange(keys.undelivered(fp), '0', String(takenAtOnce - 1), 'WITHSCORES');
  return found.flatMap((run, i) => (i % 2 === 0 ? [{ run, since: Number(found[i + 1]) }] : []));
}

/** Removes a run from the queue, unless it has ended again or was queued again since it was read. */
export async function dropUndelivered(redis: RedisClient, fp: string, { run, since }: Undelivered): Promise<void> {
  await redis.eval(dropLua, 1, keys.undelivered(fp), run, since);
}

// KEYS 1 undelivered  ARGV 1 run  2 since
const dropLua = `
local since = redis.call('ZSCORE', KEYS[1], ARGV[1])
if since and tonumber(since) == tonumber(ARGV[2]) then redis.call('ZREM', KEYS[1], ARGV[1]) end
`;

/** Results that were delivered: the end that they belong to, their place, and who wrote them. */
type DeliveredResults = { end: string; at: number; place: string; by: string };

/** Records a delivery, if the process still holds its lease. Repeating it changes nothing. */
export async function recordResults(
  redis: RedisClient,
  run: string,
  token: string,
  { end, at, place, by }: DeliveredResults,
): Promise<'done' | 'lost'> {
  const pairs = ['resultsOf', end, 'resultsAt', at, 'resultsIn', place, 'resultsBy', by, 'resultsProblem', ''];
  return (await redis.eval(recordLua, 2, keys.run(run), keys.resultsLease(run), token, ...pairs)) as 'done' | 'lost';
}

/** Records why a delivery failed, if the process still holds its lease. */
export async function recordResultsProblem(
  redis: RedisClient,
  run: string,
  token: string,
  problem: string,
): Promise<void> {
  await redis.eval(recordLua, 2, keys.run(run), keys.resultsLease(run), token, 'resultsProblem', problem);
}

/**
 * Has the results of a run delivered again, unless the process still holds the lease of its delivery. A process that was suspended without knowing it
 * may have overwritten the delivery of another process with the results of an earlier halt.
 */
export async function requeueResults(redis: RedisClient, id: string, token: string): Promise<void> {
  if ((await redis.eval(undeliverLua, 2, keys.run(id), keys.resultsLease(id), token)) === 'held') return;
  const run = await readRun(redis, id);
  if (run !== null && awaitsResults(run)) await queueResults(redis, run, Date.now());
}

// If another process is delivering the results now, it loses the lease. The lease stays taken until it expires; by then, that holder has noticed.
// KEYS 1 run  2 lease  ARGV 1 token of the process
const undeliverLua = `
local holder = redis.call('GET', KEYS[2])
if holder == ARGV[1] then return 'held' end
if holder then redis.call('SET', KEYS[2], 'lost', 'KEEPTTL') end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'resultsOf', '') end
return 'lost'
`;

// KEYS 1 run  2 lease  ARGV 1 token that must be in the lease  2… fields and values; returns done or lost
const recordLua = `
if redis.call('GET', KEYS[2]) ~= ARGV[1] or redis.call('EXISTS', KEYS[1]) == 0 then return 'lost' end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 'done'
`;
