import type { Config } from '../config/settings.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { openLedger } from '../ledger/ledger.ts';
import { withAccess } from '../redis/access.ts';
import { addressFromUrl, type RedisAddress } from '../redis/address.ts';
import { closeQueueConnection, connectLedger, openQueueConnection, ready } from '../redis/connect.ts';
import { describeRedisError, isRedisError } from '../redis/errors.ts';
import { readContainer, serverOptions } from '../redis/private/container.ts';
import { hasData, privatePlace, readFolderId } from '../redis/private/place.ts';
import { probeOwn } from '../redis/probe.ts';
import type { Session } from './session.ts';

/**
 * The result of a look; or why Redis was not asked, '' if there is none to ask. `refusal`: Redis was asked, and the action is refused because of what
 * it holds.
 */
export type Look<T> = { found: T } | { unasked: string } | { refusal: ExpungeError };

const lookMs = 2_000;

/**
 * Calls `body` with the Redis of REDIS_URL, or with the private one of the state folder if it is running. Starts none, and stops none. Returns within
 * two seconds, and does not throw for a Redis that cannot be asked. `body` must only read.
 */
export async function lookAtRedis<T>(
  { config, env }: { config: Config; env: NodeJS.ProcessEnv },
  body: (session: Session) => Promise<T>,
): Promise<Look<T>> {
  const end = new AbortController();
  const late = new Promise<Look<T>>((resolve) => {
    const timer = setTimeout(resolve, lookMs, { unasked: `no answer in ${lookMs / 1_000} s` });
    end.signal.addEventListener('abort', () => clearTimeout(timer));
  });
  try {
    return await Promise.race([look(config, env, end.signal, body), late]);
  } finally {
    end.abort();
  }
}

async function look<T>(
  config: Config,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  body: (session: Session) => Promise<T>,
): Promise<Look<T>> {
  try {
    const address = await addressOf(config, env);
    return typeof address === 'string' ? { unasked: address } : await ask(address, signal, body);
  } catch (error) {
    if (isRedisError(error)) return { unasked: describeRedisError(error) };
    if (!(error instanceof ExpungeError)) throw error;
    return { unasked: messageOf(error) };
  }
}

/** The address of Redis; or why it is not known. */
function addressOf(config: Config, env: NodeJS.ProcessEnv): Promise<RedisAddress | string> | RedisAddress {
  if (!env.REDIS_URL) return findPrivateRedis(config.stateDir, env);
  return withAccess(addressFromUrl(env.REDIS_URL, config.allowPlaintextRedis), config);
}

async function ask<T>(
  address: RedisAddress,
  signal: AbortSignal,
  body: (session: Session) => Promise<T>,
): Promise<Look<T>> {
  const redis = connectLedger(address);
  const queueConnection = openQueueConnection(address);
  const close = () => {
    closeQueueConnection(queueConnection);
    redis.disconnect();
  };
  signal.addEventListener('abort', close, { once: true });
  try {
    await ready(redis, address, lookMs);
    const session = { redis, ledger: openLedger(redis), queueConnection };
    return await body(session).then(
      (found) => ({ found }),
      (error) => refusalOf(error),
    );
  } finally {
    close();
  }
}

/** The refusal that the same action would get because of what is in Redis. */
function refusalOf(error: unknown): { refusal: ExpungeError } {
  if (error instanceof ExpungeError && error.code !== 'UNREACHABLE') return { refusal: error };
  throw error;
}

/**
 * The private Redis of a state folder if it runs. Otherwise the reason why it does not answer, '' if there never was one. Starts and creates nothing.
 */
async function findPrivateRedis(stateDir: string, env: NodeJS.ProcessEnv): Promise<RedisAddress | string> {
  const place = privatePlace(stateDir);
  if (!hasData(place) && !readContainer(place)) return '';
  const options = await serverOptions(place, env);
  const answer = options === null ? 'none' : await probeOwn(options, readFolderId(place));
  if (options !== null && answer === 'ready') return { kind: 'private', label: `${place.folder} (private)`, options };
  return `the private Redis in ${place.folder} ${answer === 'none' ? 'does not run' : 'does not answer'}`;
}
