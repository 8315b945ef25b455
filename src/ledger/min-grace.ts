import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** The shortest grace period that a new run of a target has, whatever its command says; `at`: ms since 1970. */
export type MinGrace = { ms: number; who: string; reason: string; at: number };

/** Reads the minimum of a target; null = any grace period is long enough. */
export async function readMinGrace(redis: RedisClient, fp: string): Promise<MinGrace | null> {
  const [ms, who, reason, at] = await redis.hmget(keys.bounds(fp), 'grace', 'graceBy', 'graceReason', 'graceAt');
  return ms ? { ms: Number(ms), who: who ?? '?', reason: reason ?? '', at: Number(at) } : null;
}
