import { expect, onTestFinished, test } from 'vitest';
import { isSealed } from '../../src/ledger/run.ts';
import { openFleet, startRun } from '../support/fleet.ts';
import { makeIds } from '../support/harness.ts';
import { until } from '../support/processes.ts';

test.each([1, 4])('1,000 ids behind a million are done in seconds at 1,000/s with %i workers', async (workers) => {
  const { harness } = await openFleet(onTestFinished, { ids: 1_000_000, workers, workerArgs: ['--rate', '1000/s'] });
  await until('the long run is in the middle', () => harness.arrivals.length > 5_000);
  await startRun(harness, makeIds('small', 1_000), ['--detach', '--expect-absent']);
  const from = performance.now();
  const isDone = async () => (await harness.runs()).some((run) => run.rows === 1_000 && isSealed(run.state));
  await until('the small run is done', isDone, 60_000);
  const seconds = (performance.now() - from) / 1_000;
  console.log(`1,000 ids behind a million, ${workers} workers: ${seconds.toFixed(1)} s`);
  expect(seconds).toBeLessThan(10);
});
