import { Redis, type RedisOptions } from 'ioredis';
import { clientName } from './client.ts';
import { redisWords } from './trouble.ts';

/** What a look at an address found; 'silent' accepts connections and says nothing. */
export type Answer = 'ready' | 'loading' | 'nobody' | 'silent';

/** Asks once whether Redis answers there, for at most two seconds. */
export async function probe(options: RedisOptions): Promise<Answer> {
  const redis = oneShot(options, 'probe');
  try {
    await redis.connect();
    await redis.ping();
    return 'ready';
  } catch (error) {
    const words = redisWords(error);
    if (words.includes('LOADING')) return 'loading';
    return words === 'Command timed out' ? 'silent' : 'nobody';
  } finally {
    redis.disconnect();
  }
}

/** A connection for a few commands that never comes back once it is lost. Call `connect()` on it, then `disconnect()`. */
export function oneShot(options: RedisOptions, role: string): Redis {
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectionName: `${clientName}:${role}`,
    enableReadyCheck: false, // it would wait while Redis loads its file, and we want to know
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    disableClientInfo: true,
    replyMapping: 'legacy', // the default, which the types want spelled out
  });
  redis.on('error', () => {}); // the caller sees the rejected command
  return redis;
}

/** Why such a connection failed: a command that is rejected says only that there is none. Null while nothing went wrong. */
export function firstTroubleOf(redis: Redis): () => unknown {
  let trouble: unknown = null;
  redis.on('error', (error) => {
    trouble ??= error;
  });
  return () => trouble;
}
