import { existsSync } from 'node:fs';
import type { Config } from '../../config/settings.ts';
import { visibleLine } from '../../model/visible.ts';
import { withAccess } from '../../redis/access.ts';
import { addressFromUrl, type RedisAddress } from '../../redis/address.ts';
import type { RedisClient } from '../../redis/client.ts';
import { connectLedger, ready } from '../../redis/connect.ts';
import { keys } from '../../redis/keys.ts';
import { serverOptions } from '../../redis/private/container.ts';
import { privatePlace } from '../../redis/private/place.ts';
import type { Candidate } from './complete-words.ts';

const deadlineMs = 1_000;

/**
 * Lists the newest runs with their state and list, newest first. Changes nothing, starts no Redis, and does not wait for a Redis that does not
 * answer.
 */
export async function listNewest(config: Config, env: NodeJS.ProcessEnv, limit: number): Promise<Candidate[]> {
  const late = new Promise<Candidate[]>((resolve) => setTimeout(() => resolve([]), deadlineMs).unref());
  return Promise.race([list(config, env, limit), late]);
}

async function list(config: Config, env: NodeJS.ProcessEnv, limit: number): Promise<Candidate[]> {
  const address = await findAddress(config, env);
  if (address === null) return [];
  const redis = await connect(address);
  try {
    const ids = await redis.zrevrange(keys.runs, 0, limit - 1);
    const found = await Promise.all(ids.map((id) => redis.hmget(keys.run(id), 'state', 'files')));
    return ids.map((word, i) => ({ word, help: helpOf(found[i]!) }));
  } finally {
    redis.disconnect();
  }
}

async function findAddress(config: Config, env: NodeJS.ProcessEnv): Promise<RedisAddress | null> {
  if (config.server !== undefined) return null; // its runs are not in the Redis of this machine
  if (env.REDIS_URL) return withAccess(addressFromUrl(env.REDIS_URL, config.allowPlaintextRedis), config);
  const options = await serverOptions(privatePlace(config.stateDir), env);
  if (options === null || (options.path && !existsSync(options.path))) return null; // the private Redis is not running
  return { kind: 'private', label: '', options };
}

/** Connects once to a single server, which would refuse again. One of several servers may still answer. */
async function connect(address: RedisAddress): Promise<RedisClient> {
  const isSingle = !address.nodes && !address.options.sentinels;
  return new Promise((resolve, reject) => {
    const redis = connectLedger(address, (words) => {
      if (isSingle) reject(new Error(words));
    });
    ready(redis, address, deadlineMs).then(() => resolve(redis), reject);
  });
}

function helpOf([state, files]: (string | null)[]): string {
  return [state, files && (JSON.parse(files) as string[]).map(visibleLine).join(', ')].filter(Boolean).join(', ');
}
