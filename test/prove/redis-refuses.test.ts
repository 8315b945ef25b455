import { expect, onTestFinished, test } from 'vitest';
import { canFill } from '../support/full-redis.ts';
import { measureRejectedWrites } from '../support/redis-refuses.ts';

const cases = [
  { store: 'disk', workers: 2, why: 'its disk is full (MISCONF)' },
  { store: 'memory', workers: 2, why: 'its memory is full, maxmemory is reached (OOM)' },
  { store: 'disk', workers: 0, why: 'its disk is full (MISCONF)' },
  { store: 'replicas', workers: 2, why: 'too few of its replicas are connected (NOREPLICAS)' },
  { store: 'role', workers: 2, why: 'it is a read-only replica (READONLY)' },
] as const;

// Longer than BullMQ's locks live, and than the lines of progress are apart.
const ms = 25_000;

test.each(cases.filter(({ store }) => canFill(store)))(
  'a Redis that takes no writes in the middle of a run ($store, $workers workers) costs nothing but the time',
  async ({ store, workers, why }) => {
    const { said, status, resumedAfterMs, ...seen } = await measureRejectedWrites({
      ...{ store, workers, ids: 50_000, ms, atEnd: onTestFinished },
    });
    const lines = said.map((text) => text.split('\n').length);
    console.log(`${store}, ${workers} workers: goes on after ${Math.round(resumedAfterMs)} ms, lines of log:`, lines);
    expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false, lost: 0 });
    expect(resumedAfterMs).toBeLessThan(5_000);
    const waiting = `Waiting: Redis rejects writes: ${why}; nothing is sent until it accepts them again.`;
    if (store !== 'role') expect(status).toContain(waiting); // commands refuse a replica before they look at a run
    for (const text of said) {
      if (workers === 0) expect(text).toContain(waiting);
      else expect(text.match(/Redis rejects writes/g)).toHaveLength(1);
    }
  },
);
