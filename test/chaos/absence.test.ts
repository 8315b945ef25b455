import { describe, test } from 'vitest';
import type { Run } from '../../src/ledger/run.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';

type Burst = { ids: number; from: number; length: number; workers: number; kills?: boolean };

const settings = { EXPUNGE_MAX_CONCURRENCY: '32', EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

/** An API that answers 404 to everything from its request number `from` on, `length` times, and a run of ids of which all are there. */
async function runThrough(atEnd: AtEnd, { ids: count, from, length, workers, kills }: Burst) {
  const ids = makeIds('b', count);
  let n = 0;
  const script = () => {
    n++;
    return n > from && n <= from + length ? ('status-404' as const) : null;
  };
  const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs: 3, faults: { script } });
  const processes = await Promise.all(Array.from({ length: workers }, () => harness.spawnWorker([], settings)));
  const args = ['run', harness.list(ids), '--resource', 'annotations', '--yes', ...(workers > 0 ? ['--detach'] : [])];
  const running = harness.spawn(args, settings);
  if (kills) {
    await until('the burst has begun', () => n > from + length / 2);
    processes.pop()!.signal('SIGKILL');
    processes.push(await harness.spawnWorker([], settings));
  }
  await running.ended;
  const run = await harness.runIs('at its end', ({ state }) => ['completed', 'halted'].includes(state));
  return { harness, run, ids };
}

/** The ids that are recorded as absent although the server has them. */
function falselyAbsent(harness: Harness, { counts }: Run): number {
  return counts.absent;
}

describe.concurrent('while an API says of everything that it is not there', () => {
  for (const workers of [0, 4])
    for (const length of [20, 60, 900])
      for (const at of ['start', 'middle', 'end'])
        test(`${length} answers at the ${at} with ${workers || 'one'}`, async ({ expect, onTestFinished }) => {
          const ids = 3_000;
          const from = { start: 0, middle: 1_500, end: ids - length }[at]!;
          const { harness, run } = await runThrough(onTestFinished, { ids, from, length, workers });
          console.log(workers, length, at, run.state, run.halt, run.counts.deleted, run.counts.absent, harness.sandbox.seen.length, run.reason.slice(0, 90));
          expect(falselyAbsent(harness, run)).toBe(0);
        });
});
