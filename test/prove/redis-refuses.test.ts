import { expect, onTestFinished, test } from 'vitest';
import { canFill } from '../support/full-redis.ts';
import { seeRedisRefuse } from '../support/redis-refuses.ts';

const cases = [
  { store: 'disk', workers: 2, why: 'its disk is full (MISCONF)' },
  { store: 'memory', workers: 2, why: 'its memory is full, maxmemory is reached (OOM)' },
  { store: 'disk', workers: 0, why: 'its disk is full (MISCONF)' },
] as const;

// Longer than BullMQ's locks live, and than the lines of progress are apart.
const ms = 25_000;

test.each(cases.filter(({ store }) => canFill(store)))(
  'a Redis whose $store is full in the middle of a run ($workers workers) costs nothing but the time',
  async ({ store, workers, why }) => {
    const { said, status, resumedAfterMs, ...seen } = await seeRedisRefuse({
      ...{ store, workers, ids: 50_000, ms, atEnd: onTestFinished },
    });
    const lines = said.map((text) => text.split('\n').length);
    console.log(
      `${store} full, ${workers} workers: goes on after ${Math.round(resumedAfterMs)} ms, lines of log:`,
      lines,
    );
    expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false, lost: 0 });
    expect(resumedAfterMs).toBeLessThan(5_000);
    const waiting = `Waiting: Redis refuses writes: ${why}; nothing is sent; goes on by itself once it takes writes.`;
    expect(status).toContain(waiting);
    for (const text of said) {
      if (workers === 0) expect(text).toContain(waiting);
      else expect(text.match(/Redis refuses writes/g)).toHaveLength(1);
    }
  },
);
