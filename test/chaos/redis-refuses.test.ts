import { describe, test } from 'vitest';
import { canFill } from '../support/full-redis.ts';
import { seeRedisRefuse } from '../support/redis-refuses.ts';

const cases = [
  { store: 'disk', workers: 2, why: 'its disk is full (MISCONF)' },
  { store: 'memory', workers: 2, why: 'its memory is full, maxmemory is reached (OOM)' },
  { store: 'memory', workers: 0, why: 'its memory is full, maxmemory is reached (OOM)' },
] as const;

const settings = { EXPUNGE_MAX_CONCURRENCY: '16' };

describe.concurrent('a run in the middle whose Redis takes no writes', () => {
  test.for(cases.filter(({ store }) => canFill(store)))(
    'stands still, says why, and goes on by itself ($store full, $workers workers)',
    async ({ store, workers, why }, { expect, onTestFinished }) => {
      const { said, status, resumedAfterMs, ...seen } = await seeRedisRefuse({
        ...{ store, workers, ids: 1_500, ms: 1_500, settings },
        atEnd: onTestFinished,
      });
      expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false, lost: 0 });
      expect(resumedAfterMs).toBeLessThan(5_000);
      expect(status).toContain(
        `Waiting: Redis refuses writes: ${why}; nothing is sent; goes on by itself once it takes writes.`,
      );
      for (const log of workers > 0 ? said : []) {
        expect(log.match(/nothing is sent any more/g)).toHaveLength(1);
        expect(log).toContain(`"reason":"Redis refuses writes: ${why}"`);
        expect(log.match(/Redis takes writes again/g)).toHaveLength(1);
      }
    },
  );
});
