import { isMarked } from '../../src/ledger/cell.ts';
import { findBroken } from './checker.ts';
import { passed, startRun } from './fleet.ts';
import { openFullRedis, type Store } from './full-redis.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { annotations, makeIds } from './ids.ts';
import { type Running, until } from './processes.ts';

export type RedisRefuses = {
  store: Store;
  /** So many workers; 0 = a run in its own process. */
  workers: number;
  ids: number;
  /** How long Redis takes no writes. */
  ms: number;
  settings?: NodeJS.ProcessEnv;
  atEnd: AtEnd;
};

export type RejectedWritesResult = {
  /** Requests that left while Redis refused, beyond those whose marks it had taken before. */
  sentWithout: number;
  /** From the repair to the next request. */
  resumedAfterMs: number;
  /** What `status` says meanwhile. */
  status: string;
  /** What the processes say on stderr, each. */
  said: string[];
  /** The promise that was broken, if any. */
  broken: string | null;
  /** Whether a process ended that should have gone on. */
  hasRestarted: boolean;
  /** Ids that were neither deleted nor found gone after a request of ours. */
  lost: number;
};

const bystanders = makeIds('b', 20);

/** In the middle of a run Redis takes no writes for so long: what that costs. */
export async function measureRejectedWrites(options: RedisRefuses): Promise<RejectedWritesResult> {
  const { store, workers, ms, atEnd, settings = {} } = options;
  const ids = makeIds('f', options.ids);
  const redis = await openFullRedis(store, atEnd);
  const harness = await openHarness(atEnd, { objects: annotations([...ids, ...bystanders]), latencyMs: 20 }, redis);
  const processes = await startWork(harness, ids, workers, settings);
  await until('the run is in the middle', () => harness.arrivals.length > ids.length / 5);
  await redis.fill(await harness.onlyRun());
  const fullAt = performance.now();
  const marked = (await harness.cells()).flat().filter(isMarked).length;
  const status = await statusOf(harness);
  await passed(fullAt, ms);
  const before = performance.now();
  await redis.free();
  const freeAt = performance.now();
  const firstAfter = () => harness.arrivals.find((at) => at > Math.max(before, fullAt + 1_000));
  const resumedAt = await until('requests leave again', firstAfter);
  const run = await harness.runIs('completed', ({ state }) => state === 'completed', 300_000);
  // The others may have ended the run before a worker has looked again.
  const goesOn = ({ stderr }: Running) =>
    !stderr.includes('sending stopped') || stderr.includes('accepts writes again');
  if (workers > 0) await until('each worker says that it goes on', () => processes.every(goesOn));
  const codes = workers === 0 ? await Promise.all(processes.map(({ ended }) => ended)) : [];
  return {
    sentWithout: Math.max(0, harness.arrivals.filter((at) => at > fullAt && at < before).length - marked),
    resumedAfterMs: Math.max(0, resumedAt - freeAt),
    status,
    said: processes.map(({ stderr }) => stderr),
    broken: await findBroken({ ...harness, run, resource: 'annotations', ids, bystanders }),
    hasRestarted: codes.some(({ code }) => code !== 0) || processes.some(({ isOver }) => isOver !== (workers === 0)),
    lost: ids.length - run.counts.deleted - run.counts.gone_unconfirmed,
  };
}

async function startWork(harness: Harness, ids: string[], workers: number, env: NodeJS.ProcessEnv): Promise<Running[]> {
  if (workers === 0) return [harness.start(['run', harness.list(ids), '--resource', 'annotations', '--yes'], env)];
  const started = await Promise.all(Array.from({ length: workers }, () => harness.worker([], env)));
  await startRun(harness, ids, ['--detach'], env);
  return started;
}

/** What `status` prints of the only run. */
async function statusOf(harness: Harness): Promise<string> {
  return (await harness.expunge(['status', (await harness.onlyRun()).id])).stdout;
}
