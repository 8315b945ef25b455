import type { Redis } from 'ioredis';
import { keys } from '../redis/keys.ts';
import { parseRun, type Run } from './run.ts';

const runsAtOnce = 500;

/** All runs Redis knows, newest first. Names of runs that have expired are cleared away. */
export async function listRuns(redis: Redis): Promise<Run[]> {
  const ids = await redis.zrevrange(keys.runs, 0, -1);
  const runs: Run[] = [];
  for (let from = 0; from < ids.length; from += runsAtOnce) {
    const batch = ids.slice(from, from + runsAtOnce);
    const hashes = await readHashes(redis, batch);
    const gone = batch.filter((_, i) => hashes[i]!.state === undefined);
    if (gone.length > 0) await redis.zrem(keys.runs, ...gone);
    batch.forEach((id, i) => {
      if (hashes[i]!.state !== undefined) runs.push(parseRun(id, hashes[i]!));
    });
  }
  return runs;
}

async function readHashes(redis: Redis, ids: string[]): Promise<Record<string, string>[]> {
  return Promise.all(ids.map((id) => redis.hgetall(keys.run(id))));
}
