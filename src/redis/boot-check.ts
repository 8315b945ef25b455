import type { Cluster } from 'ioredis';
import { ExpungeError } from '../errors.ts';
import { joinAdvice } from '../model/to-type.ts';
import { clusterSlots, dataServers, isCluster, type RedisClient } from './client.ts';
import { describeRedisError } from './errors.ts';
import { checkRights } from './rights.ts';
import { evaluateServer, type Finding, type Info } from './server.ts';

/** The kind of Redis that answered. `runId`: changes with each restart; `warnings`: lines for the user. */
export type RedisFacts = { version: string; name: 'redis' | 'valkey'; runId: string; warnings: string[] };

const orElse = 'or point REDIS_URL at another one; without REDIS_URL a private one is used';

/**
 * Reads INFO (not CONFIG, which many logins are not allowed to use). Throws UNREACHABLE for a Redis that fails `evaluateServer`, for a cluster that
 * doesn't serve all its slots, and for a login that lacks rights. Findings about files are only warnings, even if they can't be written: runs wait
 * until that is over. In a cluster every primary has to pass; the facts are those of the first.
 */
export async function checkRedis(redis: RedisClient): Promise<RedisFacts> {
  const infos = await Promise.all(
    dataServers(redis).map(async (server) => parseInfo(await readInfo(() => server.info()))),
  );
  const setUp = isCluster(redis) ? 'cluster' : 'one server';
  const found = infos.flatMap((info) =>
    evaluateServer({ info, flush: null, setUp }).map((finding) => ({ info, finding })),
  );
  const failure = found.find(({ finding }) => finding.state === 'fail' && finding.aspect !== 'files');
  if (failure) throw unusable(failure.finding, setUp === 'cluster' ? failure.info.tcp_port : undefined);
  if (isCluster(redis)) await refuseLostSlots(redis);
  const info = infos[0]!;
  await checkRights(redis);
  const name = info.valkey_version ? 'valkey' : 'redis';
  const version = info.valkey_version ?? info.redis_version ?? '';
  return {
    version,
    name,
    runId: info.run_id ?? '',
    warnings: [...new Set(found.flatMap(({ finding }) => warningsOf(finding)))],
  };
}

function unusable({ words, next }: Finding, port: string | undefined): ExpungeError {
  const where = port === undefined ? '' : ` (the server of the cluster at port ${port})`;
  return new ExpungeError('UNREACHABLE', `${ofThisRedis(words)}${where}`, {
    next: joinAdvice([next ?? '', orElse], ', '),
  });
}

function warningsOf({ aspect, state, words }: Finding): string[] {
  return aspect === 'files' && state !== 'ok' ? [ofThisRedis(words)] : [];
}

function ofThisRedis(words: string): string {
  return words.replace(/^it\b/, 'this Redis');
}

async function refuseLostSlots(redis: Cluster): Promise<void> {
  const served = Number(parseInfo(await readInfo(() => redis.cluster('INFO'))).cluster_slots_ok);
  if (served === clusterSlots) return;
  const message = `this cluster serves ${served} of its ${clusterSlots} slots: runs in the others would stop`;
  throw new ExpungeError('UNREACHABLE', message, { next: `bring its servers back, ${orElse}` });
}

async function readInfo(ask: () => Promise<string>): Promise<string> {
  try {
    return await ask();
  } catch (error) {
    throw new ExpungeError('UNREACHABLE', `Redis does not answer INFO: ${describeRedisError(error)}`, {
      next: 'its login needs the command INFO, and CLUSTER INFO in a cluster',
    });
  }
}

/** Parses the fields of an INFO reply. Pure. */
export function parseInfo(text: string): Info {
  const pairs = text.split(/\r?\n/).map((line) => line.split(/:(.*)/s, 2) as [string, string?]);
  return Object.fromEntries(pairs.filter(([name, value]) => name && value !== undefined));
}
