import type { Hold } from '../../limiter/target-limiter.ts';
import type { RedisClient } from '../../redis/client.ts';
import { probeWrites } from '../../redis/writes.ts';
import type { Token } from '../../token/token.ts';
import type { Parts } from '../parts.ts';
import { singleFlight } from './single-flight.ts';

/**
 * The state of one thing that a worker needs. `words` name the fact and no operator's reason, because anyone may read them. `decides`: without it the
 * worker is not ready.
 */
type Check = { ok: boolean; decides: boolean; words: string };

/** The answer of `/readyz`. */
export type Readiness = {
  ready: boolean;
  checks: Record<'process' | 'redis' | 'ledger' | 'token' | 'target' | 'data', Check>;
};

type ReadinessOptions = {
  state: () => Parts['state'];
  redis: RedisClient;
  /** Why there is no connection to Redis, if known; '' while there is one. */
  connectionError: () => string;
  fp: string;
  token: Pick<Token, 'waiting'>;
  /** Why Redis rejects the writes of this process; '' = it accepts them. */
  writeRejection: () => string;
  hold: () => Hold | null;
  /** The actions that Redis has lost, and that were not acknowledged. */
  losses: () => readonly unknown[];
  /** Monotonic ms. */
  clock: () => number;
};

const timeoutMs = 800; // the default timeout of a Kubernetes probe is a second
const freshMs = 200;

/** Returns a function that checks whether this worker can delete. It never rejects and takes a second at most, whatever Redis does. */
export function openReadiness(options: ReadinessOptions): () => Promise<Readiness> {
  const { state, token, hold, losses, clock } = options;
  const checkRedis = singleFlight(() => redisChecks(options), { freshMs, timeoutMs, clock });
  return async () => {
    const checks = {
      process: processCheck(state()),
      ...((await checkRedis()) ?? noAnswer),
      token: tokenCheck(token),
      target: targetCheck(hold()),
      data: dataCheck(losses()),
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
  return decisive(waiting === '', waiting === '' ? 'available' : 'none; the log says why');
}

function dataCheck(losses: readonly unknown[]): Check {
  return decisive(
    losses.length === 0,
    losses.length === 0 ? 'nothing is known to be lost' : 'Redis has lost data; the log says what',
  );
}

/** The check of the target. It never decides: an outage of the target ends by itself, and neither another worker nor a restart helps. */
function targetCheck(hold: Hold | null): Check {
  if (hold === null) return { ok: true, decides: false, words: 'requests may be sent' };
  const wait = hold.leftMs > 0 ? ` (${Math.ceil(hold.leftMs / 1_000)} s left)` : '';
  return { ok: false, decides: false, words: `nothing is sent${wait}; the log says why` };
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
  const startedAt = clock();
  try {
    await redis.ping();
  } catch {
    return { redis: decisive(false, connectionError() === '' ? 'no answer' : 'no connection'), ledger: unknown };
  }
  const answered = decisive(true, `answers in ${(clock() - startedAt).toFixed(1)} ms`);
  return { redis: answered, ledger: await ledgerCheck(redis, fp, writeRejection()) };
}

/** The check of the ledger. A full Redis answers, and so does a Redis that became a replica, but neither accepts results. */
async function ledgerCheck(redis: RedisClient, fp: string, writeRejection: string): Promise<Check> {
  try {
    const words = writeRejection || (await probeWrites(redis, fp));
    return decisive(words === '', words === '' ? 'accepts writes' : 'rejects writes; the log says why');
  } catch {
    return decisive(false, 'no answer');
  }
}
