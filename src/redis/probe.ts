import { connect } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { clientName } from './client.ts';
import { describeRedisError } from './errors.ts';

/** The finding of a probe of an address; 'silent': it accepts connections and does not answer; 'other': it is not the expected server. */
export type Answer = 'ready' | 'loading' | 'none' | 'silent' | 'other';

/** Probes once whether Redis answers there, for at most 2 s. Never throws. */
export function probe(options: RedisOptions): Promise<Answer> {
  return askServer(options, async (redis) => {
    await redis.ping();
    return 'ready';
  });
}

/** The same for the private Redis with this folder id. */
export function probeOwn(options: RedisOptions, folderId: string | null): Promise<Answer> {
  return askServer(options, async (redis) => {
    if (!(await isOurs(redis, folderId))) return 'other';
    await redis.ping();
    return 'ready';
  });
}

/**
 * Whether the server is the private Redis with this folder id. It is started with the id as its `syslog-ident`, a setting that it does not use.
 * Unlike a key, the setting exists while data are being loaded and after FLUSHALL. Throws if Redis does not answer.
 */
export async function isOurs(redis: Redis, folderId: string | null): Promise<boolean> {
  const [, shown] = (await redis.config('GET', 'syslog-ident')) as string[];
  return folderId !== null && shown === folderId;
}

async function askServer(options: RedisOptions, ask: (redis: Redis) => Promise<Answer>): Promise<Answer> {
  const redis = oneShot(options, 'probe');
  const firstError = watchFirstError(redis);
  try {
    await redis.connect();
    return await ask(redis);
  } catch (error) {
    return answerOf(firstError() ?? error);
  } finally {
    redis.disconnect();
  }
}

function answerOf(error: unknown): Answer {
  const words = describeRedisError(error);
  if (words.includes('LOADING')) return 'loading';
  if (words === 'Command timed out' || words.startsWith('BUSY')) return 'silent';
  return (error as Error).name === 'ReplyError' ? 'other' : 'none'; // a private Redis accepts every command
}

/** A connection for a few commands, which does not reconnect. Call `connect()` first, and `disconnect()` at the end. */
export function oneShot(options: RedisOptions, role: string): Redis {
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectionName: `${clientName}:${role}`,
    enableReadyCheck: false, // it would wait while Redis loads its file, and a probe has to see that
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

/** Returns a function for the first error of such a connection, null if there is none. A rejected command says only that it is not connected. */
export function watchFirstError(redis: Redis): () => unknown {
  let first: unknown = null;
  redis.on('error', (error) => {
    first ??= error;
  });
  return () => first;
}

const greetingMs = 500;

/**
 * Reads the error that Redis sends to a new connection before any command, without its dash; '' for none within half a second. A client that sends a
 * command at once does not see this error: Redis closes the connection with the command unread, which resets it. Does not work with TLS. Never
 * throws.
 */
export function readGreeting({ host, port, path, tls }: RedisOptions): Promise<string> {
  if (tls) return Promise.resolve('');
  return new Promise((resolve) => {
    const socket = connect(path ? { path } : { host: host ?? '127.0.0.1', port: port ?? 6_379 });
    const end = (said: string) => {
      socket.destroy();
      resolve(/^-([^\r\n]{1,200})/.exec(said)?.[1] ?? '');
    };
    socket.setTimeout(greetingMs, () => end(''));
    socket.once('data', (data) => end(data.toString('utf8')));
    socket.once('error', () => end(''));
    socket.once('close', () => end(''));
  });
}
