import type { Run } from '../../src/ledger/run.ts';
import { findBroken } from './checker.ts';
import { type AtEnd, openHarness, orNothing } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { until } from './processes.ts';
import type { RedisProcess } from './redis-process.ts';
import { openSentinelSet, type SentinelSet } from './sentinel.ts';

/** What befalls the primary in the middle of a run. */
export type Failover = 'killed' | 'frozen and woken' | 'told to hand over';

export type FailoverResult = {
  run: Run;
  /** The promise that was broken, if any. */
  broken: string | null;
  /** The longest time without a request after it. */
  stoodMs: number;
  /** From when the sentinels named another primary to the next request. */
  resumedAfterMs: number;
  /** Whether a worker ended. */
  hasEnded: boolean;
  seconds: number;
};

type Strike = { begin: (set: SentinelSet, primary: RedisProcess) => void | Promise<void>; end?: NodeJS.Signals };

const strikes: Record<Failover, Strike> = {
  killed: { begin: (_, primary) => primary.signal('SIGKILL') },
  // Once awake it takes itself for the primary until the sentinels tell it otherwise.
  'frozen and woken': { begin: (_, primary) => primary.signal('SIGSTOP'), end: 'SIGCONT' },
  'told to hand over': { begin: (set) => set.failOver() },
};

/** A detached run of so many ids with two workers; in the middle of it another node becomes the primary. */
export async function runFailover(atEnd: AtEnd, what: Failover, count: number): Promise<FailoverResult> {
  const set = await openSentinelSet(atEnd);
  const [ids, bystanders] = [makeIds('f', count), makeIds('b', 20)];
  const objects = annotations([...ids.filter((_, n) => n % 10 !== 3), ...bystanders]);
  const harness = await openHarness(atEnd, { objects, latencyMs: 30 }, { url: set.url });
  const workers = await Promise.all([harness.worker([], settings), harness.worker([], settings)]);
  await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', '--detach'], { env: settings });
  const before = await set.primary();
  await until('the run is in the middle', () => harness.arrivals.length > count / 3);
  const from = performance.now();
  await strikes[what].begin(set, before);
  await set.primaryIsNot(before);
  const named = performance.now();
  const resumed = await until('requests leave again', () => harness.arrivals.find((at) => at > named));
  if (strikes[what].end) before.signal(strikes[what].end);
  const run = await harness.runIs('completed', ({ state }) => state === 'completed', 120_000);
  const seconds = (performance.now() - from) / 1_000;
  // The connection of the test may learn of the new primary from one more sentinel when the run has ended, and reconnect.
  const checked = await until('Redis answers the whole check', async () => {
    const broken = findBroken({ ...harness, run, resource: 'annotations', ids, bystanders });
    return broken.then((broken) => ({ broken })).catch(orNothing);
  });
  return {
    run,
    ...checked,
    resumedAfterMs: resumed - named,
    stoodMs: longestGap(harness.arrivals.filter((at) => at > from)),
    hasEnded: workers.some(({ isOver }) => isOver),
    seconds,
  };
}

const settings = { EXPUNGE_MAX_CONCURRENCY: '32' };

function longestGap(moments: readonly number[]): number {
  return Math.max(0, ...moments.slice(1).map((at, n) => at - moments[n]!));
}
