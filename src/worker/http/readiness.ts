import type { Hold } from '../../limiter/target-limiter.ts';
import type { RedisClient } from '../../redis/client.ts';
import { describeRedisError } from '../../redis/errors.ts';
import { probeWrites } from '../../redis/writes.ts';
import type { Token } from '../../token/token.ts';
import type { Parts } from '../parts.ts';

/** One thing a worker needs. `decides`: without it the worker is not ready. */
type Check = { ok: boolean; decides: boolean; words: string };

/** What `/readyz` answers. */
export type Readiness = {
  ready: boolean;
  checks: Record<'process' | 'redis' | 'ledger' | 'token' | 'target', Check>;
};

export type ReadinessOptions = {
  state: () => Parts['state'];
  redis: RedisClient;
  /** Why there is no connection to it, as far as it is known; '' while there is one. */
  connectionError: () => string;
  fp: string;
  token: Pick<Token, 'waiting'>;
  /** Why Redis refuses what this process writes, '' = it doesn't. */
  writeRejection: () => string;
  hold: () => Hold | null;
  /** Monotonic ms. */
  clock: () => number;
};

const timeoutMs = 800; // probes give up after a second, unless they are told otherwise
const freshMs = 200;

/** Looks whether this worker can work. Never throws, and answers within a second whatever Redis does. */
export function openReadiness(options: ReadinessOptions): () => Promise<Readiness> {
  const { state, token, hold, clock } = options;
  const checkRedis = singleFlight(() => redisChecks(options), { freshMs, timeoutMs, clock });
  return async () => {
    const checks = {
      process: processCheck(state()),
      ...((await checkRedis()) ?? noAnswer),
      token: tokenCheck(token),
      target: targetCheck(hold()),
    };
    return { ready: Object.values(checks).every(({ ok, decides }) => ok || !decides), checks };
  };
}

function decisive(ok: boolean, words: string): Check {
  return { ok, decides: true, words };
}

function processCheck(state: Parts['state']): Check {
  return decisive(state === 'up', state);
}

function tokenCheck({ waiting }: Pick<Token, 'waiting'>): Check {
  return decisive(waiting === '', waiting || 'there is one');
}

/** Never decides: the target's troubles pass by themselves, and neither another worker nor a restart would mend them. */
function targetCheck(hold: Hold | null): Check {
  if (hold === null) return { ok: true, decides: false, words: 'requests may leave' };
  const wait = hold.leftMs > 0 ? ` (${Math.ceil(hold.leftMs / 1_000)} s left)` : '';
  return { ok: false, decides: false, words: `nothing leaves: ${hold.reason}${wait}` };
}

type RedisCheckResults = Pick<Readiness['checks'], 'redis' | 'ledger'>;

const unknown = decisive(false, 'not known: Redis does not answer');
const noAnswer: RedisCheckResults = { redis: decisive(false, `no answer in ${timeoutMs} ms`), ledger: unknown };

async function redisChecks({
  redis,
  connectionError,
  fp,
  writeRejection,
  clock,
}: ReadinessOptions): Promise<RedisCheckResults> {
  const askedAt = clock();
  try {
    await redis.ping();
  } catch (error) {
    return { redis: decisive(false, connectionError() || describeRedisError(error)), ledger: unknown };
  }
  const answered = decisive(true, `answers in ${(clock() - askedAt).toFixed(1)} ms`);
  return { redis: answered, ledger: await ledgerCheck(redis, fp, writeRejection()) };
}

/** A full Redis answers, and so does one that became a replica; neither takes results. */
async function ledgerCheck(redis: RedisClient, fp: string, writeRejection: string): Promise<Check> {
  try {
    const words = writeRejection || (await probeWrites(redis, fp));
    return decisive(words === '', words ? `rejects writes: ${words}` : 'accepts writes');
  } catch (error) {
    return decisive(false, describeRedisError(error));
  }
}

export type SingleFlightOptions = {
  /** How long an answer is given again without asking. */
  freshMs: number;
  /** How long anybody waits for one. */
  timeoutMs: number;
  /** Monotonic ms. */
  clock: () => number;
};

/**
 * Makes asking cheap and bounded: whoever asks gets the answer, or null if it failed or didn't come in time. Something is asked at most once
 * at a time, however long that takes, so that nothing piles up while it hangs.
 */
export function singleFlight<T>(
  ask: () => Promise<T>,
  { freshMs, timeoutMs, clock }: SingleFlightOptions,
): () => Promise<T | null> {
  let known: { answer: T; at: number } | null = null;
  let asking: Promise<T | null> | null = null;
  const askNow = async () => {
    try {
      const answer = await ask();
      known = { answer, at: clock() };
      return answer;
    } catch {
      return null;
    } finally {
      asking = null;
    }
  };
  return () => {
    if (known !== null && clock() - known.at < freshMs) return Promise.resolve(known.answer);
    asking ??= askNow();
    return inTime(asking, timeoutMs);
  };
}

async function inTime<T>(answer: Promise<T | null>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
