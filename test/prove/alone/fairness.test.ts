import { test } from 'vitest';
import { isFinalized } from '../../../src/ledger/run.ts';
import { openFleet, startRun } from '../../support/fleet.ts';
import { makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';

test.for([1, 4])(
  '1,000 ids behind a million are done in seconds at 1,000/s with %i workers',
  async (workers, { expect, onTestFinished }) => {
    const { harness } = await openFleet(onTestFinished, { ids: 1_000_000, workers, limit: '1000/s' });
    await until('the long run is in the middle', () => harness.arrivals.length > 5_000);
    await startRun(harness, makeIds('small', 1_000), ['--detach', '--expect-absent']);
    const from = performance.now();
    const small = async () => (await harness.runs()).find(({ rows }) => rows === 1_000);
    await until('the small run is done', async () => isFinalized((await small())!.state));
    const seconds = (performance.now() - from) / 1_000;
    console.log(`1,000 ids behind a million, ${workers} workers: ${seconds.toFixed(1)} s`);
    expect(seconds).toBeLessThan(10);
  },
);
