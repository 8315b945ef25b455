import { Redis, type RedisOptions } from 'ioredis';
import { clientName } from './client.ts';
import { describeRedisError } from './errors.ts';

/** What a look at an address found; 'silent' accepts connections and says nothing, 'other' is not the server that was looked for. */
export type Answer = 'ready' | 'loading' | 'nobody' | 'silent' | 'other';

/** Asks once whether Redis answers there, for at most two seconds. */
export function probe(options: RedisOptions): Promise<Answer> {
  return askServer(options, async (redis) => {
    await redis.ping();
    return 'ready';
  });
}

/** The same for the private Redis with this identity. */
export function probeOwn(options: RedisOptions, folderId: string | null): Promise<Answer> {
  return askServer(options, async (redis) => {
    if (!(await isOurs(redis, folderId))) return 'other';
    await redis.ping();
    return 'ready';
  });
}

/**
 * Whether the server at the other end is the private Redis with this identity. It was started with it as its `syslog-ident`, which it needs for
 * nothing else: unlike a key that is there from the first moment on, also while data are loaded, and stays after FLUSHALL.
 */
export async function isOurs(redis: Redis, folderId: string | null): Promise<boolean> {
  const [, shown] = (await redis.config('GET', 'syslog-ident')) as string[];
  return folderId !== null && shown === folderId;
}

async function askServer(options: RedisOptions, ask: (redis: Redis) => Promise<Answer>): Promise<Answer> {
  const redis = oneShot(options, 'probe');
  const trouble = firstErrorOf(redis);
  try {
    await redis.connect();
    return await ask(redis);
  } catch (error) {
    return answerOf(trouble() ?? error);
  } finally {
    redis.disconnect();
  }
}

function answerOf(error: unknown): Answer {
  const words = describeRedisError(error);
  if (words.includes('LOADING')) return 'loading';
  if (words === 'Command timed out' || words.startsWith('BUSY')) return 'silent';
  return (error as Error).name === 'ReplyError' ? 'other' : 'nobody'; // a server of ours refuses nothing
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
export function firstErrorOf(redis: Redis): () => unknown {
  let trouble: unknown = null;
  redis.on('error', (error) => {
    trouble ??= error;
  });
  return () => trouble;
}
