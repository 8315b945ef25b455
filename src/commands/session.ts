import { hostname, userInfo } from 'node:os';
import { Writable } from 'node:stream';
import { ExpungeError, readCertificates } from '../errors.ts';
import { type Ledger, openLedger } from '../ledger/ledger.ts';
import { isIdle } from '../ledger/list-runs.ts';
import { findRunId, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { haltRules } from '../ledger/thresholds.ts';
import type { Rate } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
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
import { openToken } from '../token/open-token.ts';
import type { Token } from '../token/token.ts';
import type { ServiceOptions } from '../worker/service.ts';
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
export function whoAmI(env: NodeJS.ProcessEnv): string {
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

/** The same for what can be done without: with --quiet only the warnings are told. */
export function sayOf({ stderr, verbosity }: Pick<Invocation, 'stderr' | 'verbosity'>): (line: string) => void {
  const say = sayOn(stderr);
  if (verbosity !== 'quiet') return say;
  return (line) => {
    if (line.startsWith('warning: ')) say(line);
  };
}

/** Where progress is shown: with --quiet nowhere. */
export function progressOn({ stderr, verbosity }: Pick<Invocation, 'stderr' | 'verbosity'>): NodeJS.WriteStream {
  if (verbosity !== 'quiet') return stderr;
  return new Writable({ write: (_chunk, _encoding, done) => done() }) as unknown as NodeJS.WriteStream;
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
    throw isRedisError(error) ? unreachable(address, describeRedisError(error)) : error;
  } finally {
    closeQueueConnection(queueConnection);
    await leavePrivateRedis(address, () => isIdle(redis));
    redis.disconnect();
  }
}

/** The run a person means by its id or an end of it. Throws USAGE if there is none, or if another release wrote it. */
export async function findRun({ redis }: Session, text: string | undefined): Promise<Run> {
  const id = await findRunId(redis, text ?? '');
  const run = await readRun(redis, id);
  if (run === null)
    throw new ExpungeError('USAGE', `run ${id} is no longer in Redis`, { next: 'expunge runs lists them' });
  refuseOtherRelease(run);
  return run;
}

/** What another release has written this one would misread. */
export function refuseOtherRelease({ id, schema }: Run): void {
  if (schema === schemaVersion) return;
  const message = `run ${id} was written by another release (version ${schema}, expected ${schemaVersion})`;
  throw new ExpungeError('USAGE', message, { next: 'use that release for it until it has ended' });
}

/** What the settings say about how a process deletes. */
export function serviceOptions(
  { config }: Pick<Invocation, 'config'>,
  { ledger, queueConnection }: Session,
  target: Target,
  { token, ca }: Credentials,
): Omit<ServiceOptions, 'queueName' | 'log'> {
  return {
    ledger,
    queueConnection,
    target,
    token,
    connection: {
      requestTimeoutMs: config.requestTimeoutMs,
      ca,
      proxy: config.proxy ?? null,
      strictConnections: config.strictConnections,
    },
    maxConcurrency: config.maxConcurrency,
    rate: null,
    burst: null,
    separateLimits: config.separateLimits,
    retryDelaysMs: config.retryDelays,
    unreachableTimeoutMs: config.unreachableTimeoutMs,
    stopFile: config.stopFile ?? null,
  };
}

/** What proves who we are to the API, and who the API is to us. */
export type Credentials = { token: Token; ca: string | null };

/** Opens where the token comes from, and reads the file of `--ca-file`. Throws CREDENTIALS or USAGE where that can't work. */
export function readCredentials({ config, env }: Pick<Invocation, 'config' | 'env'>): Credentials {
  const ca = readAuthorities(config);
  return { ca, token: openToken(config, { env, ca, clock: () => performance.now(), random: Math.random }) };
}

/** The file of `--ca-file`, or null. Throws USAGE where it holds no certificates. */
export function readAuthorities({ caFile }: Invocation['config']): string | null {
  return caFile === undefined ? null : readCertificates('--ca-file', caFile);
}

/** Throws USAGE for a --burst that is a part of no rate: it would bound nothing. */
export function refuseLoneBurst({ config, sources }: Pick<Invocation, 'config' | 'sources'>, known: Rate | null): void {
  if (sources.burst !== 'flag' || (config.rate ?? known) !== null) return;
  throw new ExpungeError('USAGE', '--burst needs a rate, and there is none', {
    next: 'add --rate, as in --rate 200/s',
  });
}
