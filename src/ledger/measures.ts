import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { activeTimeFunctions } from './active-time.lua.ts';

/** The sums of the measurements of all processes that delete a run. Best effort: the last second of a killed process is missing. */
export type Measures = {
  requests: number;
  refused: number; // throttled requests
  refreshes: number; // tokens fetched during the run
  busyMs: number; // the total duration of all answers
  workMs: number; // of all processes together
  heldMs: number; // the part of it in which sending was not allowed: Retry-After, an outage, no token
  allowed: number; // requests that the rate would have allowed in `limitedMs`
  limitedMs: number; // the part of workMs in which a limit was known
  latencyMs: { p50: number; p95: number; p99: number } | null;
};

/** Changes to the sums by field: counters, and `l<bucket>` for latencies. */
export type MeasureChanges = Map<string, number>;

const bucketsPerOctave = 8;
const minMs = 0.1;

/** The bucket of a latency. The bounds of neighbouring buckets differ by 9 %. */
export function latencyBucket(ms: number): number {
  return ms <= minMs ? 0 : Math.ceil(bucketsPerOctave * Math.log2(ms / minMs));
}

/** The upper bound of a bucket in ms. */
export function latencyAt(bucket: number): number {
  return minMs * 2 ** (bucket / bucketsPerOctave);
}

/** A coarser scale for Prometheus: every eighth bucket with its upper bound, 0.4 ms, 0.8 ms … 13 s. */
export const latencyBounds: readonly { bucket: number; seconds: number }[] = Array.from({ length: 16 }, (_, n) => ({
  bucket: bucketsPerOctave * (n + 2),
  seconds: Number(((minMs * 2 ** (n + 2)) / 1_000).toFixed(4)),
}));

/**
 * Adds changes to the run's sums, unless its record has expired. The time of requests counts as deleting time at once. So if the process is killed
 * after this, both are recorded or neither is. Repeating it would count twice, so it is never retried.
 */
export async function addMeasures(redis: RedisClient, run: string, changes: MeasureChanges): Promise<void> {
  if (changes.size === 0) return;
  const expiresInMs = await redis.pttl(keys.run(run));
  if (expiresInMs === noKey) return;
  const pipeline = redis.pipeline();
  for (const [field, by] of changes) pipeline.hincrby(keys.measures(run), field, Math.round(by));
  if (expiresInMs >= 0) pipeline.pexpire(keys.measures(run), expiresInMs); // the run may be finalized before its last measures
  if (changes.has('requests')) pipeline.eval(countTimeLua, 1, keys.run(run));
  await pipeline.exec();
}

// KEYS 1 run
const countTimeLua = `${activeTimeFunctions}
if redis.call('HEXISTS', KEYS[1], 'activeUntil') == 1 then countTime(KEYS[1], redisTime()) end
`;

const noKey = -2;

/** Reads the measures of a run so far. */
export async function readMeasures(redis: RedisClient, run: string): Promise<Measures> {
  return parseMeasures(await redis.hgetall(keys.measures(run)));
}

/** Measures that are all zero. */
export const nothingMeasured: Measures = parseMeasures({});

/** Parses the measures in a Redis hash. Pure. */
export function parseMeasures(hash: Record<string, string>): Measures {
  const number = (field: string) => Number(hash[field] ?? 0);
  return {
    requests: number('requests'),
    refused: number('refused'),
    refreshes: number('refreshes'),
    busyMs: number('busyMs'),
    workMs: number('workMs'),
    heldMs: number('heldMs'),
    allowed: number('allowed'),
    limitedMs: number('limitedMs'),
    latencyMs: percentiles(hash),
  };
}

function percentiles(hash: Record<string, string>): Measures['latencyMs'] {
  const buckets = Object.entries(hash)
    .filter(([field]) => /^l\d+$/.test(field))
    .map(([field, n]) => ({ bucket: Number(field.slice(1)), n: Number(n) }))
    .sort((a, b) => a.bucket - b.bucket);
  const all = buckets.reduce((sum, { n }) => sum + n, 0);
  if (all === 0) return null;
  const at = (share: number) => {
    let left = share * all;
    const found = buckets.find(({ n }) => {
      left -= n;
      return left <= 0;
    })!;
    return latencyAt(found.bucket);
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
