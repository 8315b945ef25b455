import { Redis } from 'ioredis';
import { openPrivateRedis } from '../../src/redis/private/open.ts';
import { privatePlace } from '../../src/redis/private/place.ts';
import { serverOnPath, serverPid } from '../../src/redis/private/server-process.ts';
import { unpackedServer } from '../../src/redis/private/unpack.ts';
import { makeStateDir, removeStateDir, urlOf } from './redis.ts';

/** A Redis that only one test uses, because it breaks it or looks at all that is in there. Goes when the test is over. */
export type OwnRedis = { url: string; pid: number; connect(): Redis };

/** With a password where one is given, and with its files in a folder of the caller's. */
export async function openOwnRedis(
  atEnd: (task: () => Promise<void>) => void,
  password?: string,
  stateDir = makeStateDir(),
): Promise<OwnRedis> {
  const address = await openPrivateRedis(stateDir, process.env, () => {}, [serverOnPath, unpackedServer]);
  const pid = serverPid(privatePlace(stateDir))!;
  address.stay?.presence.disconnect();
  const connections: Redis[] = [];
  const connect = () => {
    const redis = new Redis({ ...address.options, ...(password ? { password } : {}), replyMapping: 'legacy' });
    redis.on('error', () => {}); // it may be stopped while we look
    connections.push(redis);
    return redis;
  };
  if (password) await setPassword(address.options.path!, password);
  atEnd(async () => {
    for (const connection of connections) connection.disconnect();
    if (serverPid(privatePlace(stateDir)) === pid) process.kill(pid, 'SIGCONT');
    if (password) await setPassword(address.options.path!, '', password);
    await removeStateDir(stateDir);
  });
  return { url: `${urlOf(address)}${password ? `?password=${encodeURIComponent(password)}` : ''}`, pid, connect };
}

async function setPassword(path: string, password: string, before?: string): Promise<void> {
  const options = { path, replyMapping: 'legacy', retryStrategy: () => null } as const;
  const redis = new Redis({ ...options, ...(before ? { password: before } : {}) });
  redis.on('error', () => {}); // a test may have killed it
  await redis.config('SET', 'requirepass', password).catch(() => {});
  redis.disconnect();
}
