import { describe, expect, test } from 'vitest';
import { setLimit } from '../../../src/ledger/steer-target.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { type LocalWorkers, openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

const limit = parseRate('20/s');
const author = { who: 'ana', reason: '', at: 7 };

/** Requests a second, from the first to the last. */
function pace({ sandbox }: LocalWorkers): number {
  const { atMs } = sandbox.arrivals;
  return (atMs.length - 1) / ((atMs.at(-1)! - atMs[0]!) / 1_000);
}

async function isDone({ run }: LocalWorkers, ...ids: string[]): Promise<void> {
  for (const id of ids) await until('the run ends', async () => (await run(id)).state === 'completed');
}

describe('the limit of a target', () => {
  test('bounds all that is sent to it, until it ends', async ({ onTestFinished }) => {
    const ids = makeIds('c', 2_000);
    const workers = await openLocalWorkers(onTestFinished, { objects: annotations(ids) });
    await setLimit(workers.redis, workers.fp, limit, author);
    await isDone(workers, ...(await Promise.all([0, 30].map((from) => workers.submit(ids.slice(from, from + 30))))));
    expect(pace(workers)).toBeLessThan(23);
    await setLimit(workers.redis, workers.fp, null, author);
    await workers.submit(ids.slice(60));
    await until('it goes faster', () => (workers.service.sender.limiter.known?.rate ?? 0) > 25);
  });
});
