import type { Redis } from 'ioredis';

/** Since Redis 7 a script can ask what the login is allowed to do. A command that is denied would leave an entry in ACL LOG. */
const mayReadLua = "return redis.acl_check_cmd == nil or redis.acl_check_cmd('config', 'get', 'appendonly')";

/**
 * Reads settings of Redis by a pattern of their names, each name before its value; null if the login is not allowed to read them. Sends no command
 * that is known to be denied. Throws if Redis does not answer.
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
