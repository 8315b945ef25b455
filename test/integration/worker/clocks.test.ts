import { expect, test, vi } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { until } from '../../support/processes.ts';

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
    const { sandbox, submit, run, redis } = await openLocalWorkers(
      onTestFinished,
      { objects: annotations(ids), faults: { script: (_, __, nth) => (nth <= quickAttempts ? 'status-409' : null) } },
      { retryDelaysMs: [1_000, 1_000, 1_000, 1_000, 1_000] },
    );
    const id = await submit(ids);
    await until('its pass is over', async () => (await redis.zcard(keys.deferred(id))) === 1);
    const deferredAt = performance.now();
    aheadMs = enqueuing! * 60_000;
    await until('the run ends', async () => (await run(id)).state === 'completed');
    const { atMs } = sandbox.arrivals;
    expect(atMs).toHaveLength(ids.length * (quickAttempts + 1));
    expect(atMs[ids.length * quickAttempts]! - deferredAt).toBeGreaterThan(900);
  },
);
