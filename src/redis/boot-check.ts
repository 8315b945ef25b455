import { ExpungeError } from '../errors.ts';
import type { RedisClient } from './client.ts';
import { redisWords } from './trouble.ts';
import { isOldVersion, oldestVersion } from './version.ts';

/** What kind of Redis answered. `runId` changes when its process does; `warnings` are lines for the user. */
export type RedisFacts = { version: string; name: 'redis' | 'valkey'; runId: string; warnings: string[] };

const next = 'change that Redis or point REDIS_URL at another one; without REDIS_URL a private one is used';

/**
 * Reads INFO (never CONFIG: many logins may not) and throws UNREACHABLE for a Redis that would lose the ledger: too old,
 * evicting, a replica, or a cluster behind a plain URL. AOF off is a warning.
 */
export async function checkRedis(redis: RedisClient): Promise<RedisFacts> {
  const info = parseInfo(await readInfo(redis));
  const refusal = refusalOf(info);
  if (refusal) throw new ExpungeError('UNREACHABLE', refusal, { next });
  const name = info.valkey_version ? 'valkey' : 'redis';
  const version = info.valkey_version ?? info.redis_version ?? '';
  return { version, name, runId: info.run_id ?? '', warnings: warningsOf(info) };
}

async function readInfo(redis: RedisClient): Promise<string> {
  try {
    return await redis.info();
  } catch (error) {
    throw new ExpungeError('UNREACHABLE', `Redis does not answer INFO: ${redisWords(error)}`, {
      next: 'its login needs the command INFO',
    });
  }
}

/** The fields of an INFO reply. */
export function parseInfo(text: string): Partial<Record<string, string>> {
  const pairs = text.split(/\r?\n/).map((line) => line.split(/:(.*)/s, 2) as [string, string?]);
  return Object.fromEntries(pairs.filter(([name, value]) => name && value !== undefined));
}

function refusalOf(info: Partial<Record<string, string>>): string | null {
  const version = info.redis_version ?? '';
  const policy = info.maxmemory_policy;
  if (isOldVersion(version)) return `Redis ${version || 'of unknown version'} is too old: ${oldestVersion} is needed`;
  if (policy && policy !== 'noeviction') {
    return `this Redis evicts keys (maxmemory-policy ${policy}) and would lose the ledger: it must be noeviction`;
  }
  if (info.cluster_enabled === '1') return 'this Redis is a node of a cluster, which a plain REDIS_URL cannot address';
  if (info.role === 'slave') return 'this Redis is a read-only replica: REDIS_URL must name its primary';
  return null;
}

function warningsOf(info: Partial<Record<string, string>>): string[] {
  if (info.aof_enabled === '1') return [];
  return ['this Redis keeps no append-only file (AOF): if it crashes, the record of what was deleted since is lost'];
}
