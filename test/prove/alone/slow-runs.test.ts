import { describe, expect, test } from 'vitest';
import { parseRate } from '../../../src/model/rate.ts';
import { keys } from '../../../src/redis/keys.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { type LocalWorkers, openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

const fast = makeIds('fast', 5_000);

/** A worker that has so many runs of 1,500 ids each at this rate in hand. */
async function openSlow(atEnd: Parameters<typeof openLocalWorkers>[0], count: number, rate: string) {
  const lists = Array.from({ length: count }, (_, n) => makeIds(`slow${n}`, 1_500));
  const workers = await openLocalWorkers(atEnd, { objects: annotations([...lists.flat(), ...fast]) });
  for (const ids of lists) await workers.submit(ids, { rate: parseRate(rate) });
  await until('all are at work', () => lists.every((_, n) => arrived(workers, `slow${n}-`).length >= 2));
  return { workers, lists };
}

/** When the requests for ids with this beginning arrived. */
function arrived({ sandbox }: LocalWorkers, name: string): number[] {
  return sandbox.arrivals.atMs.filter((_, n) => sandbox.seen[n]!.includes(`/${name}`));
}

async function isDone({ run }: LocalWorkers, id: string): Promise<void> {
  await until('the fast run is done', async () => (await run(id)).state === 'completed');
}

describe('a run without a rate', () => {
  test.for([
    [6, '2/s'],
    [8, '100/s,10/day'],
  ] as const)(
    'never waits for long beside %i runs at %s in the same worker',
    async ([count, rate], { onTestFinished }) => {
      const { workers } = await openSlow(onTestFinished, count, rate);
      const startedAt = performance.now();
      await isDone(workers, await workers.submit(fast));
      const at = [startedAt, ...arrived(workers, 'fast-')];
      const longest = at.slice(1).reduce((most, ms, n) => Math.max(most, ms - at[n]!), 0);
      expect(longest).toBeLessThan(8_000);
    },
  );
});

describe.concurrent('a run at a rate of its own', () => {
  test('keeps it beside a run without one', async ({ onTestFinished, expect }) => {
    const { workers, lists } = await openSlow(onTestFinished, 6, '5/s');
    const before = lists.map((_, n) => arrived(workers, `slow${n}-`).length);
    const startedAt = performance.now();
    await isDone(workers, await workers.submit(fast));
    await until('ten seconds have passed', () => performance.now() > startedAt + 10_000);
    const sent = lists.map((_, n) => arrived(workers, `slow${n}-`).length - before[n]!);
    expect(Math.min(...sent)).toBeGreaterThan(30);
  });

  test('waits for a permit in nobody’s hand where the next one is far, and leaves with it', async ({
    onTestFinished,
    expect,
  }) => {
    const { workers, run, at } = await openWaiting(onTestFinished, '10/min');
    await until('nobody holds its chunk', async () => (await workers.redis.hlen(keys.open(run))) === 0);
    await until('the second request came', () => at().length === 2);
    expect(at()[1]! - at()[0]!).toBeGreaterThan(5_500);
    expect(at()[1]! - at()[0]!).toBeLessThan(8_000);
  });
});

/** A worker with a run of 20 ids at this rate, which has sent its first request. */
async function openWaiting(atEnd: Parameters<typeof openLocalWorkers>[0], rate: string) {
  const workers = await openLocalWorkers(atEnd, { objects: annotations(fast) });
  const run = await workers.submit(fast.slice(0, 20), { rate: parseRate(rate) });
  const at = () => arrived(workers, 'fast');
  await until('the first request came', () => at().length === 1);
  return { workers, run, at };
}
