import { fileURLToPath } from 'node:url';
import { isFinalized, type Run } from '../../src/ledger/run.ts';
import { definitionOf, type Resource } from '../../src/model/resource.ts';
import type { FaultTable } from '../../src/sandbox/faults.ts';
import { findBroken } from './checker.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { makeIds } from './ids.ts';
import { startNode, until } from './processes.ts';
import { configOf, configuredResources } from './resources.ts';

export type Storm = {
  ids: number;
  /** The resource of all ids. This process has to know it, as the sandbox is in it; every other process has `configuredResources`. */
  resource?: Resource;
  seed: number;
  /** What the test context gives: called when the test is over. */
  atEnd: AtEnd;
  /** Whether the time has come for the next kill. */
  killNow: (sofar: Sofar) => boolean;
  /** Workers that ignore the marks of dead ones. */
  careless?: boolean;
  latencyMs?: number;
};

/** How a storm goes; `sinceMs` and `settledSince` count from the last kill. */
export type Sofar = { kills: number; elapsedMs: number; sinceMs: number; settledSince: number };

export type StormResult = {
  broken: string | null;
  run: Run;
  kills: number;
  seconds: number;
  requestsPerId: number;
};

/** Two in a hundred requests meet one of these; the kinds that would halt a run have tests of their own. */
const faults: FaultTable = {
  'status-500': 0.002,
  'status-503': 0.002,
  'status-500-executed': 0.0025,
  'status-503-executed': 0.0025,
  'status-408-executed': 0.001,
  'status-409': 0.001,
  reset: 0.002,
  'reset-executed': 0.002,
  hang: 0.0015,
  'hang-executed': 0.0015,
  'body-204': 0.001,
  'status-429-seconds': 0.0006,
  'status-503-seconds': 0.0002,
  'status-429': 0.0001,
  'status-429-imf-fixdate': 0.0001,
  retryAfterSeconds: 0,
};

/** A 204 says nothing where it is not a success, and three of them halt the run. */
function faultsFor(resource: Resource): FaultTable {
  return definitionOf(resource).success.includes(204) ? faults : { ...faults, 'body-204': 0 };
}

const settings = {
  EXPUNGE_REQUEST_TIMEOUT_MS: '500',
  EXPUNGE_RETRY_DELAYS: '200ms,200ms,200ms,200ms,200ms',
  EXPUNGE_MAX_CONCURRENCY: '32',
};
const carelessWorker = fileURLToPath(new URL('careless-worker.ts', import.meta.url));

/**
 * A detached run with two workers, one of which is killed with SIGKILL and started again, over and over, while the API fails in every way.
 * One id in ten never existed. Says which promise was broken, if any.
 */
export async function killStorm(storm: Storm): Promise<StormResult> {
  const ids = makeIds('id', storm.ids);
  const bystanders = makeIds('bystander', 200);
  const { seed, latencyMs, resource = 'annotations' } = storm;
  const objects = [...ids.filter((_, n) => n % 10 !== 3), ...bystanders].map((id) => ({ resource, id }));
  const harness = await openHarness(storm.atEnd, { objects, seed, latencyMs, faults: faultsFor(resource) });
  Object.assign(harness.env, configOf(harness, configuredResources));
  const list = harness.list(ids);
  const submitted = harness.spawn(['run', list, '--resource', resource, '--detach', '--yes'], settings);
  const { code } = await submitted.ended;
  if (code !== 0) throw new Error(`the run was not submitted: ${submitted.stderr}`);
  const from = performance.now();
  const kills = await killUntilEnded(harness, storm);
  const seconds = (performance.now() - from) / 1_000;
  const run = await harness.onlyRun();
  const broken = await findBroken({ ...harness, run, resource, ids, bystanders });
  return { broken, run, kills, seconds, requestsPerId: harness.sandbox.seen.length / ids.length };
}

/** Kills and restarts until the run has ended; returns how often it killed. */
async function killUntilEnded(harness: Harness, { killNow, careless }: Storm): Promise<number> {
  const start = async () => {
    if (!careless) return harness.spawnWorker([], settings);
    const worker = harness.own(startNode([carelessWorker], harness.env));
    await until('the careless worker listens', () => worker.stderr.includes('"ready"'));
    return worker;
  };
  let [, victim] = await Promise.all([start(), start()]);
  let kills = 0;
  const from = performance.now();
  let [killedAt, settledThen] = [from, 0];
  const sofar = (settled: number): Sofar => {
    const now = performance.now();
    return { kills, elapsedMs: now - from, sinceMs: now - killedAt, settledSince: settled - settledThen };
  };
  for (;;) {
    const run = await harness.runIs('due for a kill', (now) => isOver(now) || killNow(sofar(now.settled)), 300_000);
    if (isOver(run)) return kills;
    victim!.signal('SIGKILL');
    kills++;
    [killedAt, settledThen] = [performance.now(), run.settled];
    await victim!.ended;
    victim = await start();
  }
}

/** Whether the run has ended, or never will: nothing in a storm may halt it. */
function isOver({ state }: Run): boolean {
  return isFinalized(state) || state === 'halted';
}

/** What a storm came to, on one line. */
export function describeStorm({ run, kills, seconds, requestsPerId }: StormResult, seed: number): string {
  const { deleted, absent, gone_unconfirmed, unknown, failed } = run.counts;
  const outcomes = `${deleted} deleted, ${absent} absent, ${gone_unconfirmed} gone_unconfirmed, ${unknown} unknown, ${failed} failed`;
  const halted = run.state === 'halted' ? ` (halted: ${run.reason})` : '';
  return `seed ${seed}${halted}: ${run.rows} ids, ${kills} kills, ${seconds.toFixed(1)} s, ${requestsPerId.toFixed(3)} requests an id: ${outcomes}`;
}
