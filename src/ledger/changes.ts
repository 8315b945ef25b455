import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { keptChanges } from './changes.lua.ts';
import { type HaltCode, type RunState, type SteeredBy, setFields } from './run.ts';

/** A change of a run's state, numbered from 1 in their order. */
export type RunChange = {
  n: number;
  at: number; // ms since 1970
  state: RunState;
  reason: string;
  by: SteeredBy | '';
  who: string;
  halt: HaltCode | '';
};

/** Reads the changes of a run that were not passed on, oldest first. `changes` and `published` are fields of its record. */
export async function readChanges(
  redis: RedisClient,
  run: string,
  changes: number,
  published: number,
): Promise<RunChange[]> {
  const first = Math.max(published, changes - keptChanges) + 1;
  const numbers = Array.from({ length: Math.max(0, changes - first + 1) }, (_, i) => first + i);
  if (numbers.length === 0) return [];
  const found = await redis.hmget(keys.run(run), ...numbers.map((n) => `change:${n}`));
  return found.filter((text) => text !== null).map((text) => JSON.parse(text) as RunChange);
}

/** Records that all changes up to this number were passed on. Repeating it changes nothing. */
export async function markPublished(redis: RedisClient, run: string, n: number): Promise<void> {
  await setFields(redis, run, { published: n });
}
