import { describe, test } from 'vitest';
import { parseRate, storedRate } from '../../../src/model/rate.ts';
import { keys } from '../../../src/redis/keys.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

// Workers in this process. What is promised for seconds on a machine of their own is in `test/prove/alone/`.

const ids = makeIds('r', 20);

describe.concurrent('the rate of a run', () => {
  test('is never exceeded by several workers, nor by tries that are repeated', async ({ expect, onTestFinished }) => {
    const perSecond = 8; // less than whoever knows nothing of a target begins with
    const script = (_: string, id: string, nth: number) => (/[38]$/.test(id) && nth <= 2 ? 'status-500' : null);
    const workers = await openLocalWorkers(onTestFinished, { objects: annotations(ids), faults: { script } });
    await Promise.all([workers.add(), workers.add()]);
    const fromMs = performance.now();
    const run = await workers.submit(ids, { rate: parseRate(`${perSecond}/s`) });
    await until('the run ends', async () => (await workers.run(run)).state === 'completed');
    const { atMs } = workers.sandbox.arrivals;
    const allowed = (at: number) => 1 + 1.05 * perSecond * ((at - fromMs) / 1_000);
    expect(atMs.filter((at, n) => n + 1 > allowed(at))).toEqual([]); // what is late is never early
    expect(atMs).toHaveLength(28);
  });

  test('that allows a request an hour holds no chunk meanwhile, and another rate applies at once', async ({
    expect,
    onTestFinished,
  }) => {
    const { sandbox, redis, submit, run } = await openLocalWorkers(onTestFinished, { objects: annotations(ids) });
    const id = await submit(ids, { rate: parseRate('1/h') });
    await until('the first request came', () => sandbox.seen.length === 1);
    await until('nobody holds its chunk', async () => (await redis.hlen(keys.open(id))) === 0);
    await redis.hset(keys.run(id), 'rate', storedRate(parseRate('50/s')));
    await until('the run ends', async () => (await run(id)).state === 'completed');
    expect(sandbox.seen).toHaveLength(20);
  });
});

test('a run behind a long one does not wait for its end', async ({ expect, onTestFinished }) => {
  const [long, short] = [makeIds('long', 6_000), makeIds('short', 300)];
  const objects = annotations([...long, ...short]);
  const { sandbox, submit, run } = await openLocalWorkers(onTestFinished, { objects, latencyMs: 5 });
  const sentOfLong = () => sandbox.seen.filter((path) => path.includes('/long-')).length;
  const first = await submit(long);
  await until('the long run is in the middle', () => sandbox.seen.length > 500);
  const before = sentOfLong();
  const second = await submit(short);
  await until('the short run ends', async () => (await run(second)).state === 'completed');
  expect(sentOfLong() - before).toBeLessThan(3_000);
  expect((await run(first)).state).toBe('running');
});
