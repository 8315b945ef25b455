import { describe, test } from 'vitest';
import { isFinalized } from '../../src/ledger/run.ts';
import { openFleet, startRun } from '../support/fleet.ts';
import type { Harness } from '../support/harness.ts';
import { makeIds } from '../support/ids.ts';
import { until } from '../support/processes.ts';
import { arrivalsOf, partOfNext, steered, stopsWithinASecond } from '../support/shares.ts';
import { isFull } from '../support/size.ts';

const atRate = ['--rate', '1000/s'];
const detached = ['--detach', '--expect-absent'];

/** The run with so many rows. */
async function runOf({ runs }: Harness, rows: number) {
  return until('the run is there', async () => (await runs()).find((run) => run.rows === rows));
}

if (isFull)
  test.for([1, 4])(
    '1,000 ids behind a million are done in seconds at 1,000/s with %i workers',
    async (workers, { expect, onTestFinished }) => {
      const { harness } = await openFleet(onTestFinished, { ids: 1_000_000, workers, workerArgs: atRate });
      await until('the long run is in the middle', () => harness.arrivals.length > 5_000);
      await startRun(harness, makeIds('small', 1_000), detached);
      const from = performance.now();
      await until('the small run is done', async () => isFinalized((await runOf(harness, 1_000)).state));
      const seconds = (performance.now() - from) / 1_000;
      console.log(`1,000 ids behind a million, ${workers} workers: ${seconds.toFixed(1)} s`);
      expect(seconds).toBeLessThan(10);
    },
  );

describe.concurrent('at 1,000/s', () => {
  test('a run of 1,000 ids behind a long one is done in seconds', async ({ expect, onTestFinished }) => {
    const { harness } = await openFleet(onTestFinished, { ids: 20_000, workers: 2, workerArgs: atRate });
    await until('the long run is in the middle', () => harness.arrivals.length > 2_000);
    await startRun(harness, makeIds('small', 1_000), detached);
    const before = arrivalsOf(harness, 'f').length;
    await until('the small run is done', async () => isFinalized((await runOf(harness, 1_000)).state));
    expect(arrivalsOf(harness, 'f').length - before).toBeLessThan(6_000); // of the long one meanwhile: seconds, on any machine
    expect((await runOf(harness, 20_000)).state).toBe('running');
  });

  test('runs share the wire alike; pause and cancel hold within a second and leave others alone', async ({
    onTestFinished,
  }) => {
    const { harness } = await openFleet(onTestFinished, { ids: 15_000, workers: 1, workerArgs: atRate });
    await startRun(harness, makeIds('g', 12_000), detached);
    const [f, g] = [await runOf(harness, 15_000), await runOf(harness, 12_000)];
    await until('both runs are at work', () => arrivalsOf(harness, 'g').length > 500);
    await until('each run has half of the wire', async () => {
      const part = await partOfNext(harness, 1_000, 'g');
      return part > 0.4 && part < 0.6;
    });

    await stopsWithinASecond(harness, 'f', await steered(harness, ['pause', f.id]));
    const others = arrivalsOf(harness, 'g').length;
    await until('the other run has the wire to itself', () => arrivalsOf(harness, 'g').length > others + 500);
    await steered(harness, ['resume', f.id]);
    await stopsWithinASecond(harness, 'g', await steered(harness, ['cancel', g.id, '--yes']));
    const before = arrivalsOf(harness, 'f').length;
    await until('the resumed run goes on', () => arrivalsOf(harness, 'f').length > before + 500);
  });
});
