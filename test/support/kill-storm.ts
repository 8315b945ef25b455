import { isDoubtful, isMarked } from '../../src/ledger/cell.ts';
import { isFinalized, type Run } from '../../src/ledger/run.ts';
import { definitionOf, type Resource } from '../../src/model/resource.ts';
import { chunkSize } from '../../src/model/row.ts';
import type { FaultTable } from '../../src/sandbox/faults.ts';
import { findBroken } from './checker.ts';
import { type AtEnd, type Harness, openHarness } from './harness.ts';
import { makeIds } from './ids.ts';
import { until, without } from './processes.ts';
import { configOf, configuredResources } from './resources.ts';

export type Storm = {
  ids: number;
  /** How often a worker is killed, evenly over the run. */
  kills: number;
  /** The resource of all ids. This process has to know it, as the sandbox is in it; every other process has `configuredResources`. */
  resource?: Resource;
  seed: number;
  /** What the test context gives: called when the test is over. */
  atEnd: AtEnd;
  /** Workers that ignore the marks of dead ones. */
  careless?: boolean;
};

/** `hits`: kills that came while a request was in no ledger; the others found the run over. */
export type StormResult = { broken: string | null; run: Run; requestsPerId: number; hits: number };

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

/**
 * A detached run with two workers, which are killed with SIGKILL and started again, first both of them and then in turn, while the API fails in
 * every way. They die while the ledger does not know of a request that was executed. One id in ten never existed, and absence is expected, so
 * that nothing but the marks keeps an id from being called absent: no halt and no second look. Says which promise was broken, if any.
 */
export async function killStorm(storm: Storm): Promise<StormResult> {
  const { seed, resource = 'annotations', careless = false, atEnd } = storm;
  const ids = makeIds('id', storm.ids);
  const bystanders = makeIds('bystander', 200);
  const objects = [...ids.filter((_, n) => n % 10 !== 3), ...bystanders].map((id) => ({ resource, id }));
  const harness = await openHarness(atEnd, { objects, seed, latencyMs: 20, faults: faultsFor(resource) });
  Object.assign(harness.env, configOf(harness, configuredResources), settings);
  const rate = `${Math.ceil(storm.ids / 3)}/s`; // so that it lasts until the last kill
  const args = ['--resource', resource, '--detach', '--yes', '--expect-absent', '--rate', rate];
  const submitted = harness.spawn(['run', harness.list(ids), ...args]);
  const { code } = await submitted.ended;
  if (code !== 0) throw new Error(`the run was not submitted: ${submitted.stderr}`);
  // Of several ids nothing but their mark says that a request was executed: faults do not hide each of them.
  const isLost = async () => {
    await harness.redis.ping(); // it has then read all that stopped workers had written to it
    const isOnlyMarked = (cell: number) => isMarked(cell) && !isDoubtful(cell);
    const marked = (await harness.cells()).flatMap((cells, n) =>
      cells.flatMap((cell, i) => (isOnlyMarked(cell) ? [ids[n * chunkSize + i]] : [])),
    );
    return marked.filter((id) => harness.sandbox.executed.has(`${resource}/${id}`)).length >= 5;
  };
  const hits = await killInTurn(harness, storm, without('patience', ...(careless ? (['marks'] as const) : [])), isLost);
  const run = await harness.runIs('over', isOver, 600_000);
  const broken = await findBroken({ ...harness, run, resource, ids, bystanders });
  return { broken, run, requestsPerId: harness.sandbox.seen.length / ids.length, hits };
}

async function killInTurn(
  harness: Harness,
  { ids, kills }: Storm,
  env: NodeJS.ProcessEnv,
  isLost: () => Promise<boolean>,
): Promise<number> {
  const start = () => harness.spawnWorker([], env);
  const workers = await Promise.all([start(), start()]);
  let hits = 0;
  for (let n = 0; n < kills; n++) {
    await harness.runIs(
      'due for a kill',
      (run) => run.settled >= (ids * (n + 1)) / (kills + 1) || isOver(run),
      600_000,
    );
    const numbers = n === 0 ? [0, 1] : [n % 2];
    const signal = (name: NodeJS.Signals) => numbers.forEach((number) => void workers[number]!.signal(name));
    // The other worker may finish the run meanwhile; then a kill has nothing left to break.
    const found = await until('a request is in no ledger', async () => {
      signal('SIGSTOP');
      if (await isLost()) return 'a request';
      signal('SIGCONT');
      return isOver(await harness.onlyRun()) ? 'the end' : null;
    });
    if (found === 'a request') hits += 1;
    signal('SIGKILL');
    for (const number of numbers) {
      await workers[number]!.ended;
      workers[number] = await start();
    }
  }
  return hits;
}

/** Whether the run has ended, or never will: nothing in a storm may halt it. */
function isOver({ state }: Run): boolean {
  return isFinalized(state) || state === 'halted';
}

/** What a storm came to, on one line. */
export function describeStorm({ run, requestsPerId }: StormResult, seed: number): string {
  const { deleted, absent, gone_unconfirmed, unknown, failed } = run.counts;
  const outcomes = `${deleted} deleted, ${absent} absent, ${gone_unconfirmed} gone_unconfirmed, ${unknown} unknown, ${failed} failed`;
  const halted = run.state === 'halted' ? ` (halted: ${run.reason})` : '';
  return `seed ${seed}${halted}: ${run.rows} ids, ${requestsPerId.toFixed(3)} requests an id: ${outcomes}`;
}
