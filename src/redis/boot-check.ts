import type { Cluster } from 'ioredis';
import { ExpungeError } from '../errors.ts';
import { clusterSlots, isCluster, type RedisClient, serversOf } from './client.ts';
import { checkRights } from './rights.ts';
import { redisWords } from './trouble.ts';
import { isOldVersion, oldestVersion } from './version.ts';

/** What kind of Redis answered. `runId` changes when its process does; `warnings` are lines for the user. */
export type RedisFacts = { version: string; name: 'redis' | 'valkey'; runId: string; warnings: string[] };

const next = 'change that Redis or point REDIS_URL at another one; without REDIS_URL a private one is used';

/**
 * Reads INFO (never CONFIG: many logins may not) and throws UNREACHABLE for a Redis that would lose the ledger: too old,
 * evicting, a replica, a cluster behind a plain URL, one that doesn't serve all its slots, or with a login that lacks rights. AOF off is a
 * warning. Of a cluster every primary must be sound; the facts are those of one of them.
 */
export async function checkRedis(redis: RedisClient): Promise<RedisFacts> {
  const infos = await Promise.all(
    serversOf(redis).map(async (server) => parseInfo(await readInfo(() => server.info()))),
  );
  const refusal = isCluster(redis)
    ? await clusterRefusal(redis, infos)
    : refusalOf(infos[0]!) || plainRefusal(infos[0]!);
  if (refusal) throw new ExpungeError('UNREACHABLE', refusal, { next });
  const info = infos[0]!;
  await checkRights(redis);
  const name = info.valkey_version ? 'valkey' : 'redis';
  const version = info.valkey_version ?? info.redis_version ?? '';
  return { version, name, runId: info.run_id ?? '', warnings: [...new Set(infos.flatMap(warningsOf))] };
}

async function clusterRefusal(redis: Cluster, infos: readonly Info[]): Promise<string | null> {
  const unsound = infos.find((info) => refusalOf(info));
  if (unsound) return `${refusalOf(unsound)} (the server of the cluster at port ${unsound.tcp_port})`;
  const served = Number(parseInfo(await readInfo(() => redis.cluster('INFO'))).cluster_slots_ok);
  return served === clusterSlots
    ? null
    : `this cluster serves ${served} of its ${clusterSlots} slots: runs in the others would stand still`;
}

async function readInfo(ask: () => Promise<string>): Promise<string> {
  try {
    return await ask();
  } catch (error) {
    throw new ExpungeError('UNREACHABLE', `Redis does not answer INFO: ${redisWords(error)}`, {
      next: 'its login needs the command INFO, and CLUSTER INFO in a cluster',
    });
  }
}

/** The fields of an INFO reply. */
export type Info = Partial<Record<string, string>>;

/** Reads an INFO reply. */
export function parseInfo(text: string): Info {
  const pairs = text.split(/\r?\n/).map((line) => line.split(/:(.*)/s, 2) as [string, string?]);
  return Object.fromEntries(pairs.filter(([name, value]) => name && value !== undefined));
}

function refusalOf(info: Info): string | null {
  const version = info.redis_version ?? '';
  const policy = info.maxmemory_policy;
  if (isOldVersion(version)) return `Redis ${version || 'of unknown version'} is too old: ${oldestVersion} is needed`;
  if (policy && policy !== 'noeviction') {
    return `this Redis evicts keys (maxmemory-policy ${policy}) and would lose the ledger: it must be noeviction`;
  }
  return null;
}

function plainRefusal(info: Info): string | null {
  if (info.cluster_enabled === '1')
    return 'this Redis is a server of a cluster, which only redis+cluster:// can address';
  if (info.role === 'slave') return 'this Redis is a read-only replica: REDIS_URL must name its primary';
  return null;
}

function warningsOf(info: Info): string[] {
  if (info.aof_enabled === '1') return [];
  return ['this Redis keeps no append-only file (AOF): if it crashes, the record of what was deleted since is lost'];
}
