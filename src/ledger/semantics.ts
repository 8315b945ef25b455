import { describeSemantics, type Semantics } from '../model/semantics.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** Reads what `check --semantics` found out about a target, at most one entry per resource, also for resources that are not defined here. */
export async function readSemantics(redis: RedisClient, fp: string): Promise<Semantics[]> {
  const stored = await redis.hgetall(keys.semantics(fp));
  return Object.entries(stored)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, text]) => JSON.parse(text) as Semantics);
}

/** The same as a sentence for everyone who sees a run of the target, or none; see `describeSemantics`. */
export async function readAbsentAnswers(redis: RedisClient, fp: string): Promise<string[]> {
  return describeSemantics(await readSemantics(redis, fp));
}

/** Stores the entry in place of an earlier one for that resource. Repeating it changes nothing. */
export async function storeSemantics(redis: RedisClient, fp: string, semantics: Semantics): Promise<void> {
  await redis.hset(keys.semantics(fp), semantics.resource, JSON.stringify(semantics));
}
