import { plural } from '../format.ts';
import { successStatus } from '../model/status.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** The sentence about this many answers that were a 204 with a body, for every display of a run; empty if there were none. */
export function describeBodies(answers: number): string[] {
  if (answers === 0) return [];
  const subject = `${plural(answers, 'answers')} ${answers === 1 ? 'was' : 'were'}`;
  return [`${subject} ${successStatus} with a body, which HTTP does not allow: is it the API that answers?`];
}

/**
 * Records how many answers of a run were a 204 with a body, as counted by one counter since it began. The run's record has the sum of all counters. A
 * run whose record has expired is not written again. Repeating it counts nothing twice: Redis remembers each counter's total.
 */
export async function storeBodies(redis: RedisClient, run: string, counter: string, answers: number): Promise<void> {
  await redis.eval(storeBodiesLua, 2, keys.run(run), keys.measures(run), `bodies:${counter}`, answers);
}

// The counters are not in the record, because the record is read ten times a second.
// KEYS 1 run  2 measures  ARGV 1 counter  2 answers
const storeBodiesLua = `
if redis.call('EXISTS', KEYS[1]) == 0 then return end
local more = tonumber(ARGV[2]) - tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or 0)
if more <= 0 then return end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'bodies', more)
local leftMs = redis.call('PTTL', KEYS[1])
if leftMs > 0 then redis.call('PEXPIRE', KEYS[2], leftMs) end
`;
