import { type Run, readRun } from '../../src/ledger/run.ts';
import { keys } from '../../src/redis/keys.ts';
import { findBroken } from './checker.ts';
import { openCluster } from './cluster.ts';
import { until } from './processes.ts';
import { annotations, makeIds, openScene, type Scene } from './scene.ts';

export type ClusterStorm = {
  ids: number;
  atEnd: Parameters<typeof openScene>[0];
  /** What becomes of the primary of the run. */
  signal: 'SIGKILL' | 'SIGSTOP';
  settings?: NodeJS.ProcessEnv;
};

export type ClusterStormSeen = {
  run: Run;
  /** The promise that was broken, if any. */
  broken: string | null;
  /** The longest time without a request after the blow. */
  stoodStillMs: number;
  seconds: number;
  /** Whether a worker ended that should have gone on. */
  hasEnded: boolean;
};

/**
 * Two workers and a detached run on a cluster of three primaries. In the middle of it the slot of the run is moved to another primary,
 * then that of the target and its queue, and then the primary that has the run is struck.
 */
export async function seeClusterStorm({
  ids: count,
  atEnd,
  signal,
  settings,
}: ClusterStorm): Promise<ClusterStormSeen> {
  const [ids, bystanders] = [makeIds('c', count), makeIds('bystander', 100)];
  const cluster = await openCluster(atEnd);
  const objects = annotations([...ids.filter((_, n) => n % 10 !== 3), ...bystanders]);
  const scene = await openScene(atEnd, { objects, latencyMs: 20 }, cluster);
  const workers = await Promise.all([scene.worker([], settings), scene.worker([], settings)]);
  const from = performance.now();
  const args = ['run', scene.list(ids), '--resource', 'annotations', '--yes', '--detach'];
  const submitted = scene.expunge(args, settings);
  const { code } = await submitted.ended;
  if (code !== 0) throw new Error(`the run was not submitted: ${submitted.stderr}`);
  const { id } = await scene.run();
  const share = (part: number) =>
    runIs(scene, id, `${part} of it is settled`, ({ settled }) => settled >= part * count, 300_000);
  await share(0.2);
  await cluster.moveSlotOf(keys.run(id));
  await share(0.4);
  await cluster.moveSlotOf(`${keys.queuePrefix(scene.target.fp)}:`);
  await share(0.6);
  await cluster.strike(keys.run(id), signal);
  const struckAt = performance.now();
  const run = await runIs(scene, id, 'it is completed', ({ state }) => state === 'completed', 300_000);
  return {
    run,
    broken: await findBroken({ ...scene, run, resource: 'annotations', ids, bystanders }),
    stoodStillMs: longestGap(scene.arrivals, struckAt),
    seconds: (performance.now() - from) / 1_000,
    hasEnded: workers.some(({ isOver }) => isOver),
  };
}

/** Waits until the run is so, also while nobody can be asked. */
function runIs(scene: Scene, id: string, what: string, condition: (run: Run) => boolean, deadlineMs: number) {
  return until(
    what,
    async () => {
      const run = await readRun(scene.redis, id).catch(() => null);
      return run && condition(run) ? run : null;
    },
    deadlineMs,
  );
}

function longestGap(arrivals: readonly number[], sinceMs: number): number {
  const after = [sinceMs, ...arrivals.filter((at) => at > sinceMs)];
  return after.slice(1).reduce((longest, at, n) => Math.max(longest, at - after[n]!), 0);
}
