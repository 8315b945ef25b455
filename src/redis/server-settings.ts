import type { Redis } from 'ioredis';

/** Since Redis 7 a script can ask what the login may do; a command that is denied would leave an entry in ACL LOG. */
const mayReadLua = "return redis.acl_check_cmd == nil or redis.acl_check_cmd('config', 'get', 'appendonly')";

/**
 * Settings of Redis by a pattern of their names, each name before its value; null if the login may not read them. Asks for nothing that is known
 * to be denied. Throws where Redis does not answer.
 */
export async function readServerSettings(redis: Redis, pattern: string): Promise<string[] | null> {
  try {
    if ((await redis.eval(mayReadLua, 0)) !== 1) return null;
    return (await redis.config('GET', pattern)) as string[];
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return null;
    throw error;
  }
}
