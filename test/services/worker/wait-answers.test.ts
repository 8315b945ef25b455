import { expect, test } from 'vitest';
import { readClock } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

const delaysMs = [60_000, 600_000, 6_000_000, 60_000_000, 600_000_000];

test('an id that is told to wait by --on-status comes back after the retry delays, and it costs no attempt', async ({
  onTestFinished,
}) => {
  const ids = makeIds('w', 60);
  const locked = ids[59]!;
  const { sandbox, submit, run, redis, service } = await openLocalWorkers(
    onTestFinished,
    {
      objects: annotations(ids),
      faults: { script: (_, id, nth) => (id === locked && nth <= 3 ? 'status-423' : null) },
    },
    { retryDelaysMs: delaysMs },
  );
  const id = await submit(ids, { onStatus: '423=wait' });
  const deferred = keys.deferred(id);
  for (const n of [0, 1, 2]) {
    await until('it waits', async () => (await redis.zcard(deferred)) === 1);
    expect(sandbox.seen).toHaveLength(ids.length + n);
    const leftMs = Number(await redis.zscore(deferred, '0')) - (await readClock(redis, deferred));
    const [before = 0, delayMs] = [delaysMs[n - 1], delaysMs[n]!];
    expect([leftMs > 1.5 * before, leftMs < 1.5 * delayMs], `${leftMs} for ${delayMs}`).toEqual([true, true]);
    await redis.zadd(deferred, 1, '0'); // it is due
    await service.enqueuer.enqueue(id);
  }
  await until('the run ends', async () => (await run(id)).state === 'completed');
  expect(await run(id)).toMatchObject({ attempts: 60, counts: { deleted: 60 } });
});
