import { hostname, userInfo } from 'node:os';
import { Writable } from 'node:stream';
import { ExpungeError } from '../errors.ts';
import { type Ledger, openLedger } from '../ledger/ledger.ts';
import { isIdle } from '../ledger/list-runs.ts';
import { findRunId, type Run, readRun, schemaVersion } from '../ledger/run.ts';
import { haltRules } from '../ledger/thresholds.ts';
import type { Rate } from '../model/rate.ts';
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
import { confirmCount, confirmYes } from '../terminal/ask.ts';
import { plainLine } from '../terminal/style.ts';
import type { Invocation } from './command.ts';

/** A command's connection to Redis. */
export type Session = {
  redis: RedisClient;
  ledger: Ledger;
  queueConnection: QueueConnection;
};

/** A connection to a Redis that may not be reachable yet. */
export type EarlySession = Session & {
  address: RedisAddress;
  /** Why there is no connection, if that is known; '' while there is one. */
  connectionError(): string;
};

/** The operator for the audit trail: EXPUNGE_USER if it is set, else `user@machine`. */
export function whoAmI(env: NodeJS.ProcessEnv): string {
  if (env.EXPUNGE_USER) return env.EXPUNGE_USER.slice(0, longestName);
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `uid ${process.getuid?.() ?? '?'}@${hostname()}`; // a user without a name, as in containers
  }
}

const longestName = 100;

/** Writes messages for people to stderr, a line each. */
export function sayOn(stderr: NodeJS.WriteStream): (line: string) => void {
  return (line) => stderr.write(`${line}\n`);
}

/** Writes warnings to stderr, a line each. A server may have said them, so nothing in them steers the terminal. */
export function warnOn(stderr: NodeJS.WriteStream, warnings: readonly string[]): void {
  for (const words of warnings) stderr.write(`warning: ${plainLine(words)}\n`);
}

/** The same as `sayOn` for what can be done without: with --quiet only the warnings are told. */
export function sayOf({ stderr, verbosity }: Pick<Invocation, 'stderr' | 'verbosity'>): (line: string) => void {
  const say = sayOn(stderr);
  if (verbosity !== 'quiet') return say;
  return (line) => {
    if (line.startsWith('warning: ')) say(line);
  };
}

/** The same, but nothing for who reads the output of --json. */
export function sayUnlessJson(invocation: Invocation): (line: string) => void {
  return invocation.options.json ? () => {} : sayOf(invocation);
}

/** Where progress is shown: with --quiet nowhere. */
export function progressOn({ stderr, verbosity }: Pick<Invocation, 'stderr' | 'verbosity'>): NodeJS.WriteStream {
  if (verbosity !== 'quiet') return stderr;
  return new Writable({ write: (_chunk, _encoding, done) => done() }) as unknown as NodeJS.WriteStream;
}

/** Returns when so many deletions or requests are confirmed, on the command line or by who is asked. `what`: as in a `Question`. Throws USAGE otherwise. */
export function askCount(
  invocation: Invocation,
  expected: number,
  what: string,
  verb: 'delete' | 'send' = 'delete',
): Promise<void> {
  const { args, options, stdin, stderr, env } = invocation;
  const confirm = (options.confirm as number | undefined) ?? null;
  const question = { expected, what, verb, yes: options.yes === true, confirm };
  return confirmCount(question, { stdin, stderr, env, stdinIsData: args.includes('-') });
}

/** Returns when the question is answered with yes, by --yes or by who is asked. Throws USAGE otherwise. */
export function askYes({ options, stdin, stderr, env }: Invocation, question: string): Promise<void> {
  return confirmYes(question, options.yes === true, { stdin, stderr, env, stdinIsData: false });
}

/**
 * Connects to Redis, checks it, and calls `body`. Throws UNREACHABLE if it cannot be reached or does not meet the requirements, and USAGE
 * if the state folder never had a private Redis, unless `mayBegin` allows a new one. The last client that leaves a private Redis stops it,
 * unless a run is `running`.
 */
export async function withRedis<T>(
  invocation: Pick<Invocation, 'config' | 'env' | 'address'>,
  say: (line: string) => void,
  body: (session: EarlySession & { facts: RedisFacts }) => Promise<T>,
  mayBegin = false,
): Promise<T> {
  const checked = async (session: EarlySession) => {
    await ready(session.redis, session.address);
    return body({ ...session, facts: await checkSession(session, say) });
  };
  return withEarlyRedis(invocation, say, checked, mayBegin);
}

/** Throws UNREACHABLE for a Redis that does not meet the requirements; calls `say` with warnings about any other. */
export async function checkSession({ redis }: Session, say: (line: string) => void): Promise<RedisFacts> {
  const facts = await checkRedis(redis);
  for (const warning of facts.warnings) say(`warning: ${warning}`);
  return facts;
}

/** Like `withRedis`, for a command that waits for Redis and checks it itself. */
export async function withEarlyRedis<T>(
  { config, env, address }: Pick<Invocation, 'config' | 'env' | 'address'>,
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

/** The same for an address that is known. */
export async function withRedisAt<T>(address: RedisAddress, body: (session: EarlySession) => Promise<T>): Promise<T> {
  let connectionError = '';
  const redis = connectLedger(address, (words) => {
    connectionError = words;
  });
  redis.on('ready', () => {
    connectionError = '';
  });
  const queueConnection = openQueueConnection(address);
  try {
    const ledger = openLedger(redis, haltRules);
    return await body({ redis, ledger, queueConnection, address, connectionError: () => connectionError });
  } catch (error) {
    throw isRedisError(error) ? unreachable(address, describeRedisError(error)) : error;
  } finally {
    closeQueueConnection(queueConnection);
    await leavePrivateRedis(address, () => isIdle(redis));
    redis.disconnect();
  }
}

/** The run with this id, or whose id ends with this text. Throws USAGE if there is none, or if another release wrote it. */
export async function findRun({ redis }: Session, text: string | undefined): Promise<Run> {
  const id = await findRunId(redis, text ?? '');
  const run = await readRun(redis, id);
  if (run === null)
    throw new ExpungeError('USAGE', `run ${id} is no longer in Redis`, { next: 'expunge runs lists them' });
  refuseOtherRelease(run);
  return run;
}

/** Throws USAGE for a run of another release, which this one would misread. */
export function refuseOtherRelease({ id, schema }: Run): void {
  if (schema === schemaVersion) return;
  const message = `run ${id} was written by another release (version ${schema}, expected ${schemaVersion})`;
  throw new ExpungeError('USAGE', message, { next: 'use that release for it until it has ended' });
}

/** Throws USAGE for --burst without a rate: it would have no effect. */
export function refuseLoneBurst({ config, sources }: Pick<Invocation, 'config' | 'sources'>, known: Rate | null): void {
  if (sources.burst !== 'flag' || (config.rate ?? known) !== null) return;
  throw new ExpungeError('USAGE', '--burst needs a rate, and there is none', {
    next: 'add --rate, as in --rate 200/s',
  });
}
