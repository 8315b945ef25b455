import { describe, expect, test } from 'vitest';
import { parseRate } from '../../../src/model/rate.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { type LocalWorkers, openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

const rate = parseRate('20/s');

/** Requests a second, from the first to the last. */
function pace({ sandbox }: LocalWorkers): number {
  const { atMs } = sandbox.arrivals;
  return (atMs.length - 1) / ((atMs.at(-1)! - atMs[0]!) / 1_000);
}

async function isDone({ run }: LocalWorkers, ...ids: string[]): Promise<void> {
  for (const id of ids) await until('the run ends', async () => (await run(id)).state === 'completed');
}

describe('worker --rate', () => {
  test('bounds all that is sent to the target, though that worker sends nothing, until it drains', async ({
    onTestFinished,
  }) => {
    const ids = makeIds('c', 2_000);
    const workers = await openLocalWorkers(onTestFinished, { objects: annotations(ids) });
    const idle = await workers.add({ rate, queueName: 'nothing-here' });
    await isDone(workers, await workers.submit(ids.slice(0, 60)));
    expect(pace(workers)).toBeLessThan(23);
    await idle.drain();
    await workers.submit(ids.slice(60));
    await until('it goes faster', () => (workers.service.senders.all[0]!.limiter.known?.rate ?? 0) > 25);
  });

  test('bounds annotations and views together where they have limits of their own', async ({ onTestFinished }) => {
    const [a, v] = [makeIds('a', 30), makeIds('v', 30)];
    const objects = [...annotations(a), ...v.map((id) => ({ resource: 'views' as const, id }))];
    const workers = await openLocalWorkers(onTestFinished, { objects }, { rate, separateLimits: true });
    const runs = [await workers.submit(a), await workers.submit(v, { resource: 'views' })];
    await isDone(workers, ...runs);
    expect(pace(workers)).toBeLessThan(23);
  });
});
