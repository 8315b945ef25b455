import { chooseRuns, type ListedRun } from '../../src/ledger/list-runs.ts';
import type { RedisClient } from '../../src/redis/client.ts';

/** Reads all runs that Redis knows, newest first. */
export async function listRuns(redis: RedisClient): Promise<ListedRun[]> {
  return (await chooseRuns(redis, { sort: 'created', limit: Number.POSITIVE_INFINITY })).runs;
}
