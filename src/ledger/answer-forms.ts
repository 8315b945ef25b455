import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/**
 * Stores a form of answers of a run under a name, unless one is stored, and returns the stored one; '' = only read it, or there is none. A run whose
 * record has expired is not written again. Repeating it changes nothing.
 */
export async function shareForm(redis: RedisClient, run: string, name: string, form: string): Promise<string> {
  return String(await redis.eval(shareFormLua, 2, keys.run(run), keys.measures(run), `form:${name}`, form));
}

// KEYS 1 run  2 measures  ARGV 1 field  2 form
const shareFormLua = `
if redis.call('EXISTS', KEYS[1]) == 1 and ARGV[2] ~= '' and redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  local leftMs = redis.call('PTTL', KEYS[1])
  if leftMs > 0 then redis.call('PEXPIRE', KEYS[2], leftMs) end
end
return redis.call('HGET', KEYS[2], ARGV[1]) or ''
`;
