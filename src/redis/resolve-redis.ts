import type { Config } from '../config/settings.ts';
import { type RedisAccess, refuseAccess, withAccess } from './access.ts';
import { addressFromUrl, type RedisAddress } from './address.ts';
import { openPrivateRedis, refuseWithoutRedis } from './private/open.ts';

type Settings = Pick<Config, 'stateDir' | 'allowPlaintextRedis'> & RedisAccess;

/**
 * REDIS_URL where it is set, with no fall-through; else the private Redis of the state folder. Says which one was taken. `mayBegin`: the folder
 * may get its first one, which only makes sense for what makes a run; else it throws USAGE where there never was one.
 * Does not contact the one of REDIS_URL: `ready` and `checkRedis` do.
 */
export async function resolveRedis(
  { stateDir, allowPlaintextRedis, ...access }: Settings,
  env: NodeJS.ProcessEnv,
  say: (line: string) => void,
  mayBegin = true,
): Promise<RedisAddress> {
  if (!env.REDIS_URL) {
    refuseAccess(access);
    if (!mayBegin) refuseWithoutRedis(stateDir);
    return openPrivateRedis(stateDir, env, say);
  }
  const address = withAccess(addressFromUrl(env.REDIS_URL, allowPlaintextRedis), access);
  say(`Redis: ${address.label} (REDIS_URL)`);
  return address;
}
