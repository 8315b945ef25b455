import { ExpungeError } from '../errors.ts';
import type { Advice } from '../model/to-type.ts';
import { dataServers, isCluster, type RedisClient } from './client.ts';

/**
 * The commands that a login needs, grouped by their use, each with its smallest number of arguments. Categories are not used, because they would
 * include KEYS or FLUSHALL.
 */
export const neededCommands: readonly Readonly<Record<string, number>>[] = [
  { ping: 0, info: 0, time: 0, eval: 2, evalsha: 2, multi: 0, exec: 0 },
  { exists: 1, del: 1, unlink: 1, rename: 2, persist: 1, pexpire: 2, pttl: 1 },
  { get: 1, set: 2, mget: 1, incr: 1, getrange: 3, setrange: 3 },
  { hget: 2, hmget: 2, hgetall: 1, hkeys: 1, hvals: 1, hlen: 1, hexists: 2 },
  { hset: 3, hmset: 3, hsetnx: 3, hincrby: 3, hdel: 2 },
  { llen: 1, lrange: 3, lindex: 2, lpos: 2, lset: 3, lpush: 2, rpush: 2, rpop: 1, rpoplpush: 2, lrem: 3, ltrim: 3 },
  { smembers: 1, scard: 1, sadd: 2, srem: 2, xadd: 4, xtrim: 3 },
  { zcard: 1, zcount: 3, zscore: 2, zmscore: 2, zrange: 3, zrevrange: 3, zrangebyscore: 3, zrevrangebyscore: 3 },
  { zadd: 3, zincrby: 3, zrem: 2, zremrangebyrank: 3, zremrangebyscore: 3, zpopmin: 1, bzpopmin: 2 },
];

// The connection itself uses the other commands that a cluster needs, and fails without them.
const neededInCluster = { asking: 0 };

/** The start of all keys of expunge and of its queues. */
export const ourKeys = 'expunge';

/** The advice for a login that lacks a right. */
export const rightsAdvice: Advice = (toType) =>
  `give it the rights that ${toType('help', 'redis')} lists, under Permissions`;
const maxNamed = 8;

/**
 * Throws UNREACHABLE for a login that lacks a right, before any work begins. In a cluster it checks every primary, because each has its own logins.
 * Redis 6.2 cannot answer the question, so there a command that needs the right fails later.
 */
export async function checkRights(redis: RedisClient): Promise<void> {
  const rows = isCluster(redis) ? [...neededCommands, neededInCluster] : neededCommands;
  const commands = rows.flatMap((row) => Object.entries(row));
  const asked = dataServers(redis).map((server) => server.eval(askForRights, 0, `${ourKeys}:`, ...commands.flat()));
  const lacking = [...new Set((await Promise.all(asked)).flat() as string[])];
  if (lacking.length === 0) return;
  const others = lacking.length > maxNamed ? ` and ${lacking.length - maxNamed} more` : '';
  const named = `${lacking.slice(0, maxNamed).join(', ')}${others}`;
  throw new ExpungeError('UNREACHABLE', `the Redis login lacks the permission for ${named}, on keys ${ourKeys}*`, {
    next: rightsAdvice,
  });
}

// The number of arguments matters: Valkey 9.1 crashes when asked about an EVAL with too few of them.
/** ARGV: a key, then pairs of a command and how often the key is passed as its argument. Returns the commands that are not allowed. */
const askForRights = `
if not redis.acl_check_cmd then return {} end
local lacking = {}
for i = 2, #ARGV, 2 do
  local command = {ARGV[i]}
  for n = 1, tonumber(ARGV[i + 1]) do command[n + 1] = ARGV[1] end
  local is_known, is_allowed = pcall(redis.acl_check_cmd, unpack(command))
  if not (is_known and is_allowed) then table.insert(lacking, ARGV[i]) end
end
return lacking
`;
