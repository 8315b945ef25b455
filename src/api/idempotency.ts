import type { Context } from 'hono';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { Caller } from './access.ts';
import { Problem } from './problem.ts';
import { hashOf } from './token-store.ts';

/** What is known of a request: what it asked for, and what it was answered; null while it is being done. */
type Noted = { request: string; answer: unknown };

const pendingMs = 10 * 60_000;
const keptMs = 86_400_000;

/**
 * Does `work` once for each Idempotency-Key of a caller, and answers a repetition within a day the same. Throws `unprocessable` where the
 * key came with another request, and `conflict` while that is being done. A request that failed can be repeated. After a crash of this
 * server within `work`, it is done again ten minutes later at the earliest: what it makes is the same then.
 */
export async function doOnce(
  { req }: Context,
  redis: RedisClient,
  caller: Caller,
  facts: unknown,
  work: () => Promise<unknown>,
): Promise<{ answer: unknown; isRepeated: boolean }> {
  const given = req.header('idempotency-key');
  if (given === undefined) return { answer: await work(), isRepeated: false };
  if (!/^[\x21-\x7e]{1,100}$/.test(given))
    throw new Problem('invalid', 'Idempotency-Key: expected 1 to 100 visible characters');
  const key = keys.apiRequest(hashOf([caller.name, req.method, req.path, given].join('\n')));
  const request = hashOf(JSON.stringify(facts));
  const pending = JSON.stringify({ request, answer: null } satisfies Noted);
  if ((await redis.set(key, pending, 'PX', pendingMs, 'NX')) === null) return repeated(await redis.get(key), request);
  try {
    const answer = await work();
    await redis.set(key, JSON.stringify({ request, answer } satisfies Noted), 'PX', keptMs);
    return { answer, isRepeated: false };
  } catch (error) {
    await redis.del(key).catch(() => {}); // the error of the work matters more; the key expires
    throw error;
  }
}

function repeated(text: string | null, request: string): { answer: unknown; isRepeated: boolean } {
  const noted = text === null ? null : (JSON.parse(text) as Noted);
  if (noted !== null && noted.request !== request)
    throw new Problem('unprocessable', 'this Idempotency-Key came with another request before', 'use a new one');
  if (noted === null || noted.answer === null)
    throw new Problem('conflict', 'a request with this Idempotency-Key is being done', 'repeat it in a while');
  return { answer: noted.answer, isRepeated: true };
}
