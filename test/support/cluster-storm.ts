import { type Run, readRun } from '../../src/ledger/run.ts';
import { keys } from '../../src/redis/keys.ts';
import { findBroken } from './checker.ts';
import type { TestCluster } from './cluster.ts';
import { startRun } from './fleet.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { until } from './processes.ts';

export type ClusterStorm = {
  cluster: TestCluster;
  ids: number;
  atEnd: AtEnd;
  /** 0: a run in its own process. */
  workers: number;
  /** Which primary is struck: the one that has the run, or the one that has the target and its queue. */
  victim: 'run' | 'target';
  /** It dies, or it hangs until another one has taken over, and then wakes. */
  signal: 'SIGKILL' | 'SIGSTOP';
};

export type ClusterStormResult = {
  run: Run;
  /** The promise that was broken, if any. */
  broken: string | null;
  /** The longest time without a request after the blow. */
  stoodStillMs: number;
  seconds: number;
  /** Whether a process ended that should have gone on. */
  hasEnded: boolean;
};

const quietMs = 500;
const feltMs = 1_000; // a blow that nobody feels came too late

/**
 * A run on a cluster of three primaries. In the middle of it the slot of the run is moved to another primary, with a break in which
 * nothing can be done, then that of the target and its queue, and then a primary is struck.
 */
export async function runClusterStorm(storm: ClusterStorm): Promise<ClusterStormResult> {
  const { cluster, ids: count, atEnd, signal } = storm;
  const [ids, bystanders] = [makeIds('c', count), makeIds('bystander', 100)];
  const objects = annotations([...ids.filter((_, n) => n % 10 !== 3), ...bystanders]);
  const harness = await openHarness(atEnd, { objects, latencyMs: 20 }, cluster);
  const workers = await Promise.all(Array.from({ length: storm.workers }, () => harness.worker()));
  const from = performance.now();
  const rate = ['--rate', `${count / 5}/s`]; // so that it lasts until the blow
  const running = await startRun(harness, ids, workers.length > 0 ? ['--detach', ...rate] : rate);
  const { id } = await harness.onlyRun();
  const [runKey, targetKey] = [keys.run(id), `${keys.queuePrefix(harness.target.fp)}:`];
  const share = (part: number) =>
    runIs(harness, id, `${part} of it is settled`, ({ settled }) => settled >= part * count, 300_000);
  await share(0.2);
  await cluster.moveSlotOf(runKey, () => until('nothing leaves any more', () => isQuiet(harness)));
  await share(0.4);
  await cluster.moveSlotOf(targetKey);
  await share(0.6);
  await cluster.strike(storm.victim === 'run' ? runKey : targetKey, signal);
  const struckAt = performance.now();
  await until('requests leave again', () => longestGap(harness.arrivals, struckAt) > feltMs);
  cluster.wake();
  const run = await runIs(harness, id, 'it is completed', ({ state }) => state === 'completed', 300_000);
  return {
    run,
    broken: await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders }),
    stoodStillMs: longestGap(harness.arrivals, struckAt),
    seconds: (performance.now() - from) / 1_000,
    hasEnded: workers.some(({ isOver }) => isOver) || (await running.ended).code !== 0,
  };
}

/** Waits until the run is so, also while nobody can be asked. */
export function runIs(
  harness: Harness,
  id: string,
  what: string,
  condition: (run: Run) => boolean,
  deadlineMs?: number,
) {
  return until(
    what,
    async () => {
      const run = await readRun(harness.redis, id).catch(() => null);
      return run && condition(run) ? run : null;
    },
    deadlineMs,
  );
}

function isQuiet({ arrivals }: Harness): boolean {
  return arrivals.at(-1)! < performance.now() - quietMs;
}

/** The longest time between requests, up to the last one. */
function longestGap(arrivals: readonly number[], sinceMs: number): number {
  const after = [sinceMs, ...arrivals.filter((at) => at > sinceMs)];
  return after.slice(1).reduce((longest, at, n) => Math.max(longest, at - after[n]!), 0);
}
