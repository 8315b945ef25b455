import type { Redis } from 'ioredis';
import { keys } from '../redis/keys.ts';
import type { Run } from './run.ts';

/** Remembers when a run of the target was last completed. Repeating it changes nothing. Called by one worker of a target at a time. */
export async function noteCompleted(redis: Redis, { fp, state, endedAt }: Run): Promise<void> {
  if (state !== 'completed') return;
  const schedule = ''; // of runs that somebody started
  const known = Number((await redis.hget(keys.completed(fp), schedule)) ?? 0);
  if (endedAt > known) await redis.hset(keys.completed(fp), schedule, endedAt);
}

/** When a run of each schedule was last completed, in ms since 1970; '' for runs that somebody started. */
export async function readCompleted(redis: Redis, fp: string): Promise<Record<string, number>> {
  const hash = await redis.hgetall(keys.completed(fp));
  return Object.fromEntries(Object.entries(hash).map(([schedule, at]) => [schedule, Number(at)]));
}
