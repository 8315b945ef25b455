import { paceOf, readableRate } from '../model/rate.ts';
import { chunkSize } from '../model/row.ts';
import { type RedisClient, readClock } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { retryMark } from './chunks.lua.ts';
import { sendableChunks } from './max-deletes.ts';
import { type RunState, schemaVersion } from './run.ts';

/** The remaining work in the detached runs of a target that have not ended. Runs of another version do not count. */
export type Backlog = {
  runs: Partial<Record<RunState, number>>;
  /** Ids without an outcome. */
  pending: number;
  /**
   * Pending ids that a worker could send now. Only `running` runs count, without chunks that wait for a later pass, and each run counts at most as
   * many ids as its own rate allows in a minute.
   */
  runnable: number;
};

const runsAtOnce = 500;

/** Reads the backlog of a target. `now`: by the clock of Redis, in ms since 1970. Only reads. */
export async function readBacklog(redis: RedisClient, fp: string, now: number): Promise<Backlog> {
  const ids = await redis.smembers(keys.targetRuns(fp));
  const backlog: Backlog = { runs: {}, pending: 0, runnable: 0 };
  for (let from = 0; from < ids.length; from += runsAtOnce) {
    const part = ids.slice(from, from + runsAtOnce);
    for (const left of await Promise.all(part.map((id) => readLeft(redis, id, now)))) addTo(backlog, left);
  }
  return backlog;
}

const numberFields = ['ids', 'settled', 'chunks', 'next', 'quotaUntil'] as const;

type Left = { state: RunState; pending: number; runnable: number };

async function readLeft(redis: RedisClient, id: string, now: number): Promise<Left | null> {
  const fields = ['state', 'schema', 'rate', 'canary', 'sendable'] as const;
  const [state, schema, rate, canary, sendable, ...numbers] = await redis.hmget(
    keys.run(id),
    ...fields,
    ...numberFields,
  );
  if (!state || schema !== String(schemaVersion)) return null;
  const [all = 0, settled = 0, chunks = 0, next = 0, quotaUntil = 0] = numbers.map(Number);
  const pending = all - settled;
  if (state !== 'running') return { state: state as RunState, pending, runnable: 0 };
  const [open, due] = await Promise.all([redis.hlen(keys.open(id)), redis.zcount(keys.deferred(id), '-inf', now)]);
  const rung = Number(/^\d+:(\d+)/.exec(canary ?? '')?.[1] ?? chunks); // chunks behind a rung of the canary wait
  const enqueueLimit = Math.min(rung, sendableChunks(sendable ?? '', chunks));
  const allowed = quotaUntil > now ? 0 : inOneMinute(rate ?? '');
  return { state, pending, runnable: Math.min(pending, allowed, chunkSize * (enqueueLimit - next + open + due)) };
}

/** The number of requests that a stored rate allows in a minute; 0 if the rate can't be read. */
function inOneMinute(rate: string): number {
  if (rate === '') return Number.POSITIVE_INFINITY;
  const read = readableRate(rate);
  return read === null ? 0 : Math.floor(60 * paceOf(read));
}

function addTo(backlog: Backlog, left: Left | null): void {
  if (left === null) return;
  backlog.runs[left.state] = (backlog.runs[left.state] ?? 0) + 1;
  backlog.pending += left.pending;
  backlog.runnable += left.runnable;
}

/**
 * Reads when the next ids are retried (ms since 1970 by our clock) if all remaining chunks wait for a retry; otherwise null. A chunk that was
 * deferred because no permit came in time does not wait for a retry. Only reads.
 */
export async function readNextAttempt(redis: RedisClient, run: string): Promise<number | null> {
  const [now, open, [, due]] = await Promise.all([
    readClock(redis, keys.deferred(run)),
    redis.hlen(keys.open(run)),
    redis.zrange(keys.deferred(run), 0, '0', 'WITHSCORES'),
  ]);
  return open > 0 || due === undefined || Number(due) % 1 !== retryMark
    ? null
    : Date.now() + Math.ceil(Number(due)) - now;
}
