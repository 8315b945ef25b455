import { expect, test, vi } from 'vitest';
import { readClock } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

const delayMs = 300_000;

test.for([
  [10, 0],
  [0, 10],
])(
  'ids wait as long as they should, with clocks that are %i minutes ahead where they are deferred and %i where they are enqueued',
  async ([deferring, enqueuing], { onTestFinished }) => {
    const realNow = Date.now.bind(Date);
    let aheadMs = deferring! * 60_000;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => realNow() + aheadMs);
    onTestFinished(() => clock.mockRestore());
    const ids = makeIds('c', 5);
    const quickAttempts = 3;
    const { sandbox, submit, run, redis, service } = await openLocalWorkers(
      onTestFinished,
      { objects: annotations(ids), faults: { script: (_, __, nth) => (nth <= quickAttempts ? 'status-409' : null) } },
      { retryDelaysMs: Array(5).fill(delayMs) },
    );
    const id = await submit(ids);
    const deferred = keys.deferred(id);
    await until('its pass is over', async () => (await redis.zcard(deferred)) === 1);
    const [, due] = await redis.zrange(deferred, '0', '-1', 'WITHSCORES');
    const leftMs = Number(due) - (await readClock(redis, deferred));
    expect([leftMs > 0, leftMs < 2 * delayMs], `${leftMs}`).toEqual([true, true]);
    aheadMs = enqueuing! * 60_000;
    await service.enqueuer.enqueue(id);
    expect([await redis.zcard(deferred), sandbox.seen.length]).toEqual([1, ids.length * quickAttempts]);
    await redis.zadd(deferred, 1, '0'); // negative control: it is due
    await service.enqueuer.enqueue(id);
    await until('the run ends', async () => (await run(id)).state === 'completed');
    expect(sandbox.seen).toHaveLength(ids.length * (quickAttempts + 1));
  },
);
