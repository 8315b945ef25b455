import { hostname, userInfo } from 'node:os';
import { type Ledger, openLedger } from '../ledger/ledger.ts';
import { isIdle } from '../ledger/list-runs.ts';
import { haltRules } from '../ledger/thresholds.ts';
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
import { isRedisTrouble, redisWords, unreachable } from '../redis/errors.ts';
import { leavePrivateRedis } from '../redis/leave-redis.ts';
import { resolveRedis } from '../redis/resolve-redis.ts';
import type { Invocation } from './command.ts';

/** A command's connection to Redis. */
export type Session = {
  redis: RedisClient;
  ledger: Ledger;
  queueConnection: QueueConnection;
};

/** One to a Redis that may not be there yet. */
export type EarlySession = Session & {
  address: RedisAddress;
  /** Why there is no connection, as far as it is known; '' while there is one. */
  trouble(): string;
};

/** Who gives orders, for the audit trail: EXPUNGE_USER where it is set, else `user@machine`. */
export function whoAmI(env: NodeJS.ProcessEnv = process.env): string {
  if (env.EXPUNGE_USER) return env.EXPUNGE_USER.slice(0, longestName);
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `uid ${process.getuid?.() ?? '?'}@${hostname()}`; // a user without a name, as in containers
  }
}

const longestName = 100;

/** Something to tell a person, on stderr. */
export function sayOn(stderr: NodeJS.WriteStream): (line: string) => void {
  return (line) => stderr.write(`${line}\n`);
}

/**
 * Finds Redis, checks it, and does `body` with it. Throws UNREACHABLE if there is none or it is unfit, and USAGE where the folder never had one
 * and `body` needs a run that was made before; `mayBegin`: it makes one. The last client to leave a private Redis stops it, unless a run is
 * `running`.
 */
export async function withRedis<T>(
  { config, env }: Pick<Invocation, 'config' | 'env'>,
  say: (line: string) => void,
  body: (session: EarlySession & { facts: RedisFacts }) => Promise<T>,
  mayBegin = false,
): Promise<T> {
  const checked = async (session: EarlySession) => {
    await ready(session.redis, session.address);
    return body({ ...session, facts: await checkSession(session, say) });
  };
  return withEarlyRedis({ config, env }, say, checked, mayBegin);
}

/** Throws UNREACHABLE for a Redis that is unfit, and says what may be wrong with one that isn't. */
export async function checkSession({ redis }: Session, say: (line: string) => void): Promise<RedisFacts> {
  const facts = await checkRedis(redis);
  for (const warning of facts.warnings) say(`warning: ${warning}`);
  return facts;
}

/** The same for a command that waits for Redis and checks it by itself. */
export async function withEarlyRedis<T>(
  { config, env }: Pick<Invocation, 'config' | 'env'>,
  say: (line: string) => void,
  body: (session: EarlySession) => Promise<T>,
  mayBegin: boolean,
): Promise<T> {
  const address = await resolveRedis(config, env, say, mayBegin);
  let trouble = '';
  const redis = connectLedger(address, (words) => {
    trouble = words;
  });
  redis.on('ready', () => {
    trouble = '';
  });
  const queueConnection = openQueueConnection(address);
  try {
    const ledger = openLedger(redis, haltRules);
    return await body({ redis, ledger, queueConnection, address, trouble: () => trouble });
  } catch (error) {
    throw isRedisTrouble(error) ? unreachable(address, redisWords(error)) : error;
  } finally {
    closeQueueConnection(queueConnection);
    await leavePrivateRedis(address, () => isIdle(redis));
    redis.disconnect();
  }
}
