import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { type Ledger, openLedger } from '../ledger/ledger.ts';
import { isIdle } from '../ledger/list-runs.ts';
import { findRunId, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import type { Reach } from '../model/target.ts';
import type { RedisAddress } from '../redis/address.ts';
import { checkRedis, type RedisFacts } from '../redis/boot-check.ts';
import type { RedisClient } from '../redis/client.ts';
import {
  closeQueueConnection,
  connectLedger,
  openQueueConnection,
  type QueueConnection,
  ready,
} from '../redis/connect.ts';
import { describeRedisError, isRedisError, unreachable } from '../redis/errors.ts';
import { resolveRedis } from '../redis/private/open.ts';
import { leavePrivateRedis } from '../redis/private/stop.ts';

/** A command's connection to Redis. */
export type Session = {
  redis: RedisClient;
  ledger: Ledger;
  queueConnection: QueueConnection;
};

/** A connection to a Redis that is possibly not reachable yet. */
export type EarlySession = Session & {
  address: RedisAddress;
  /** Why there is no connection, if known; '' while there is one. */
  connectionError(): string;
};

/** Which Redis is meant. `address`: the Redis of a process that stays connected, so this session does not stop it by leaving. */
type RedisPlace = { config: Config; env: NodeJS.ProcessEnv; address?: RedisAddress };

/**
 * Connects to Redis, checks it, and calls `body`. Throws UNREACHABLE if it cannot be reached or does not meet the requirements, and USAGE if the
 * state folder never had a private Redis, unless `mayBegin` allows a new one. The last client that leaves a private Redis stops it, unless a run is
 * `running`.
 */
export async function withRedis<T>(
  place: RedisPlace,
  say: (line: string) => void,
  body: (session: EarlySession & { facts: RedisFacts }) => Promise<T>,
  mayBegin = false,
): Promise<T> {
  const checked = async (session: EarlySession) => {
    await ready(session.redis, session.address);
    return body({ ...session, facts: await checkSession(session, say) });
  };
  return withEarlyRedis(place, say, checked, mayBegin);
}

/** Throws UNREACHABLE for a Redis that does not meet the requirements; otherwise calls `say` with warnings about it. */
export async function checkSession({ redis }: Session, say: (line: string) => void): Promise<RedisFacts> {
  const facts = await checkRedis(redis);
  for (const warning of facts.warnings) say(`warning: ${warning}`);
  return facts;
}

/** Works like `withRedis`, for a command that waits for Redis and checks it itself. */
export async function withEarlyRedis<T>(
  { config, env, address }: RedisPlace,
  say: (line: string) => void,
  body: (session: EarlySession) => Promise<T>,
  mayBegin: boolean,
): Promise<T> {
  if (address !== undefined) {
    const { stay: _, ...others } = address;
    return withRedisAt(others, body);
  }
  return withRedisAt(await resolveRedis(config, env, say, mayBegin), body);
}

/** Does the same for a known address. */
async function withRedisAt<T>(address: RedisAddress, body: (session: EarlySession) => Promise<T>): Promise<T> {
  let connectionError = '';
  const redis = connectLedger(address, (words) => {
    connectionError = words;
  });
  redis.on('ready', () => {
    connectionError = '';
  });
  const queueConnection = openQueueConnection(address);
  try {
    const ledger = openLedger(redis);
    return await body({ redis, ledger, queueConnection, address, connectionError: () => connectionError });
  } catch (error) {
    throw isRedisError(error) ? unreachable(address, describeRedisError(error)) : error;
  } finally {
    closeQueueConnection(queueConnection);
    await leavePrivateRedis(address, () => isIdle(redis));
    redis.disconnect();
  }
}

/** The run within reach with this id, or whose id ends with this text. Throws USAGE if there is none, or if another version wrote it. */
export async function findRun({ redis }: Session, text: string | undefined, reach: Reach = null): Promise<Run> {
  const id = await findRunId(redis, text ?? '', reach);
  const run = await readRun(redis, id);
  if (run === null)
    throw new ExpungeError('USAGE', `run ${id} is no longer in Redis`, {
      next: (toType) => `${toType('runs')} lists them`,
    });
  refuseOtherVersion(run);
  if (run.rehearsalOf !== '')
    throw new ExpungeError('USAGE', `run ${run.id} is a rehearsal: only its command can work with it`);
  return run;
}

/** Throws USAGE for a run of another version, which this one would misread. */
export function refuseOtherVersion({
  id,
  schema,
  baseUrl,
  account,
}: Pick<Run, 'id' | 'schema' | 'baseUrl' | 'account'>): void {
  if (schema === schemaVersion) return;
  const message = `run ${id} was written by another version of expunge (schema ${schema}, expected ${schemaVersion})`;
  throw new ExpungeError('USAGE', message, {
    next: (toType) =>
      `use that version for it until it has ended; to send nothing of it: ${toType('stop-all', '--base-url', baseUrl, ...(account ? ['--account', account] : []))}`,
  });
}
