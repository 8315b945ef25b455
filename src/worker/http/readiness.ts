import type { Hold } from '../../limiter/target-limiter.ts';
import { toTypeAnywhere } from '../../model/to-type.ts';
import type { RedisClient } from '../../redis/client.ts';
import { describeRedisError } from '../../redis/errors.ts';
import { probeWrites } from '../../redis/writes.ts';
import type { Token } from '../../token/token.ts';
import type { Parts } from '../parts.ts';
import { singleFlight } from './single-flight.ts';

/** The state of one thing that a worker needs, `words` for people. `decides`: without it the worker is not ready. */
type Check = { ok: boolean; decides: boolean; words: string };

/** What `/readyz` answers. */
export type Readiness = {
  ready: boolean;
  checks: Record<'process' | 'redis' | 'ledger' | 'token' | 'target' | 'data', Check>;
};

type ReadinessOptions = {
  state: () => Parts['state'];
  redis: RedisClient;
  /** Why there is no connection to Redis, if that is known; '' while there is one. */
  connectionError: () => string;
  fp: string;
  token: Pick<Token, 'waiting'>;
  /** Why Redis rejects the writes of this process; '' = it accepts them. */
  writeRejection: () => string;
  hold: () => Hold | null;
  /** What Redis has lost, and nobody has acknowledged. */
  losses: () => readonly { what: string }[];
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
  return decisive(waiting === '', waiting || 'available');
}

function dataCheck(losses: readonly { what: string }[]): Check {
  const what = losses.map((loss) => loss.what).join(', ');
  return decisive(
    what === '',
    what === ''
      ? 'nothing is known to be lost'
      : `Redis has lost ${what}; acknowledge it: ${toTypeAnywhere('target acknowledge')}`,
  );
}

/** Never decides: an outage of the target ends by itself, and neither another worker nor a restart helps. */
function targetCheck(hold: Hold | null): Check {
  if (hold === null) return { ok: true, decides: false, words: 'requests may be sent' };
  const wait = hold.leftMs > 0 ? ` (${Math.ceil(hold.leftMs / 1_000)} s left)` : '';
  return { ok: false, decides: false, words: `nothing is sent: ${hold.reason}${wait}` };
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
  } catch (error) {
    return { redis: decisive(false, connectionError() || describeRedisError(error)), ledger: unknown };
  }
  const answered = decisive(true, `answers in ${(clock() - startedAt).toFixed(1)} ms`);
  return { redis: answered, ledger: await ledgerCheck(redis, fp, writeRejection()) };
}

/** A full Redis answers, and so does one that became a replica; neither accepts results. */
async function ledgerCheck(redis: RedisClient, fp: string, writeRejection: string): Promise<Check> {
  try {
    const words = writeRejection || (await probeWrites(redis, fp));
    return decisive(words === '', words ? `rejects writes: ${words}` : 'accepts writes');
  } catch (error) {
    return decisive(false, describeRedisError(error));
  }
}
