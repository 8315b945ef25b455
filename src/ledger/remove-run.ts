import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { Run } from './run.ts';

const keysAtOnce = 500;

/** Lets Redis forget a sealed run after `keepMs`. Repeating it starts the time anew. */
export async function expireRun(redis: RedisClient, run: Run): Promise<void> {
  await eachBatch(run, (batch) => Promise.all(batch.map((key) => redis.pexpire(key, run.keepMs))));
  if ((await redis.get(keys.list(run.list))) === run.id) await redis.pexpire(keys.list(run.list), run.keepMs);
}

/** Removes everything Redis knows of a run. Repeating it is harmless. */
export async function removeRun(redis: RedisClient, run: Run): Promise<void> {
  await eachBatch(run, (batch) => Promise.all(batch.map((key) => redis.unlink(key))));
  if ((await redis.get(keys.list(run.list))) === run.id) await redis.del(keys.list(run.list));
  await redis.srem(keys.targetRuns(run.fp), run.id);
  await redis.zrem(keys.runs, run.id);
}

/** All keys of a run, a few hundred at a time; its record by itself at the end, so that a removal that was cut short can be repeated. */
async function eachBatch(run: Run, handle: (batch: string[]) => Promise<unknown>): Promise<void> {
  let batch: string[] = [];
  for (const key of keysOf(run)) {
    if (batch.push(key) < keysAtOnce) continue;
    await handle(batch);
    batch = [];
  }
  await handle(batch);
  await handle([keys.run(run.id)]);
}

function* keysOf(run: Run): Generator<string> {
  for (let n = 0; n < run.chunks; n++) {
    yield keys.manifest(run.id, n);
    yield keys.ledger(run.id, n);
  }
  for (let n = 0; n < run.blocks; n++) yield keys.settled(run.id, n);
  const { open, later, details, measures, paceMembers, paceQuotas, audit } = keys;
  yield* [open, later, details, measures, paceMembers, paceQuotas, audit].map((keyOf) => keyOf(run.id));
}
