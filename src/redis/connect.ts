import { randomBytes } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { ExpungeError, systemCode } from '../errors.ts';
import type { RedisAddress } from './address.ts';
import { redisWords } from './trouble-words.ts';

/** Begins the name of every connection of this process, so that others can be told from ours in CLIENT LIST. */
export const clientName = `expunge:${process.pid}-${randomBytes(4).toString('hex')}`;

const shared = {
  connectTimeout: 2_000,
  enableReadyCheck: true,
  retryStrategy: (times: number) => Math.min(100 * times, 1_000),
  // After a failover the old primary answers READONLY: 2 reconnects and sends the command again.
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
} satisfies RedisOptions;

/**
 * The connection of the ledger. Commands fail at once while Redis is away and after 3 s when it hangs, and are never
 * sent twice; it reconnects by itself. Use `ready` before the first command. `onTrouble` gets words that are safe to log.
 */
export function connectLedger(address: RedisAddress, onTrouble: (words: string) => void = () => {}): Redis {
  const redis = new Redis({
    ...address.options,
    ...shared,
    connectionName: `${clientName}:ledger`,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0, // with autoResendUnfulfilledCommands off, any other value leaves cut commands pending
    autoResendUnfulfilledCommands: false, // a timed-out command may have run: it must not run again
    commandTimeout: 3_000,
    socketTimeout: 5_000,
    replyMapping: 'legacy', // the default, which the types want spelled out
  });
  redis.on('error', (error) => onTrouble(redisWords(error)));
  return redis;
}

/** What BullMQ connects with: its commands wait for Redis to come back, and a hung one is left after 15 s. */
export function queueConnectionOptions(address: RedisAddress): RedisOptions {
  return {
    ...address.options,
    ...shared,
    connectionName: `${clientName}:queue`,
    maxRetriesPerRequest: null,
    socketTimeout: 15_000, // blocking calls last up to 10 s; a commandTimeout would break them
  };
}

/** Waits until the connection is usable. Throws UNREACHABLE at the deadline, at once where waiting cannot help. */
export async function ready(redis: Redis, address: RedisAddress, deadlineMs = 5_000): Promise<void> {
  const outcome = await firstOutcome(redis, deadlineMs);
  if (outcome === 'ready') return;
  redis.disconnect();
  throw unreachable(address, outcome);
}

function firstOutcome(redis: Redis, deadlineMs: number): Promise<string> {
  let words = `no answer in ${deadlineMs / 1000} s`;
  return new Promise((resolve) => {
    const end = (outcome: string) => {
      clearTimeout(timer);
      redis.off('ready', onReady).off('error', onError);
      resolve(outcome);
    };
    const onReady = () => end('ready');
    const onError = (error: Error) => {
      words = redisWords(error);
      if (isPermanent(error)) end(words);
    };
    const timer = setTimeout(() => end(words), deadlineMs);
    redis.on('ready', onReady).on('error', onError);
    if (redis.status === 'ready') end('ready');
  });
}

function isPermanent(error: Error): boolean {
  if (/^(WRONGPASS|NOAUTH|NOPERM|ERR )/.test(error.message)) return true;
  return /^(ENOTFOUND|EACCES|CERT_|ERR_TLS|ERR_SSL|EPROTO|.*_CERT|UNABLE_TO_)/.test(systemCode(error));
}

/** Whether an error came from the connection to Redis, or is an answer with which Redis refused a command. */
export function isRedisTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (['ReplyError', 'MaxRetriesPerRequestError', 'AbortError'].includes(error.name)) return true;
  return /^(Connection is closed|Command timed out|Stream isn't writeable|Socket timeout)/.test(error.message);
}

/** The exit-6 error for a Redis that cannot be used. */
export function unreachable(address: RedisAddress, words: string): ExpungeError {
  const next =
    address.kind === 'url'
      ? 'check REDIS_URL and that Redis runs; the same command resumes'
      : 'the same command starts it again and resumes';
  return new ExpungeError('UNREACHABLE', `Redis at ${address.label}: ${words}`, { next });
}
