import { describe, expect, onTestFinished, test } from 'vitest';
import { pageOfRuns, type RunCursor } from '../../../src/ledger/list-runs.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { writeManyRuns } from '../../support/many-runs.ts';
import { openOwnRedis } from '../../support/own-redis.ts';

const idOf = (n: number) => `20260101-0000-${String(n).padStart(5, '0')}`;

async function openRuns(): Promise<RedisClient> {
  const own = await openOwnRedis(onTestFinished);
  const redis = own.connect() as unknown as RedisClient;
  await writeManyRuns(redis, 12, 'completed');
  return redis;
}

describe('a page of runs', () => {
  test('has, by their end, those that ended last first, each once, and none that has not ended', async () => {
    const redis = await openRuns();
    const ends = [5, 1, 9, 9, 2, 11, 0, 3, 3, 3, 7, 4];
    await Promise.all(ends.map((end, n) => redis.hset(keys.run(idOf(n)), { endedAt: 1_000 + end })));
    await redis.hset(keys.run(idOf(0)), { state: 'running' });
    const found: string[] = [];
    let after: RunCursor | null = null;
    do {
      const page: Awaited<ReturnType<typeof pageOfRuns>> = await pageOfRuns(redis, { sort: 'ended', limit: 5 }, after);
      found.push(...page.runs.map(({ id }) => id));
      after = page.next;
    } while (after !== null);
    expect(found).toEqual([5, 3, 2, 10, 11, 9, 8, 7, 4, 1, 6].map(idOf));
  });

  test('is found by a part of why a run was submitted, or is in its state', async () => {
    const redis = await openRuns();
    await redis.hset(keys.run(idOf(4)), { note: 'Ticket 4711' });
    await redis.hset(keys.run(idOf(7)), { reason: 'see ticket 4711 again' });
    const { runs } = await pageOfRuns(redis, { sort: 'created', text: 'ticket 4711', limit: 5 }, null);
    expect(runs.map(({ id }) => id)).toEqual([7, 4].map(idOf));
  });
});
