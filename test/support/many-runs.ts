import { type RunState, runStates, schemaVersion } from '../../src/ledger/run.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { keys } from '../../src/redis/keys.ts';

/** The state of the nth run. */
export function stateOf(n: number): RunState {
  return runStates[n % runStates.length]!;
}

/**
 * Writes the records of so many runs, without chunks, into a Redis of the test's own. The nth was made n s after the moment that is
 * returned; n of its ids failed. `state`: of all of them.
 */
export async function writeManyRuns(redis: RedisClient, count: number, state?: RunState): Promise<number> {
  const start = Date.UTC(2026, 0, 1);
  for (let from = 0; from < count; from += 1_000) {
    const numbers = Array.from({ length: Math.min(1_000, count - from) }, (_, n) => from + n);
    await Promise.all(numbers.map((n) => writeRun(redis, n, start + 1_000 * n, state ?? stateOf(n))));
  }
  return start;
}

async function writeRun(redis: RedisClient, n: number, createdAt: number, state: RunState): Promise<void> {
  const id = `20260101-0000-${String(n).padStart(5, '0')}`;
  await Promise.all([redis.zadd(keys.runs, createdAt, id), redis.hset(keys.run(id), recordOf(n, createdAt, state))]);
}

function recordOf(n: number, createdAt: number, state: RunState) {
  return {
    state,
    schema: schemaVersion,
    baseUrl: `https://api-${n % 5}.example.com`,
    account: '',
    fp: `fp-${n % 5}`,
    files: JSON.stringify([`list-${n}.csv`]),
    sha256: `${n}`.repeat(8),
    list: `${n}`,
    note: 'a reason as people write',
    rows: 100_000,
    ids: 100_000,
    chunks: 200,
    blocks: 0,
    next: 200,
    settled: n,
    epoch: 200,
    attempts: n,
    deleted: 0,
    absent: 0,
    gone_unconfirmed: 0,
    failed: n,
    unknown: 0,
    not_attempted: 0,
    rejected: 0,
    duplicate: 0,
    protected: 0,
    rate: '200/1000,100000/86400000',
    onStatus: '',
    expectAbsent: 0,
    who: `user-${n % 3}@machine`,
    createdBy: `user-${n % 3}@machine`,
    by: 'operator',
    reason: '',
    keepMs: 60_000,
    detached: 1,
    createdAt,
    startedAt: createdAt,
    changedAt: createdAt,
    activeMs: 1_000,
  };
}
