import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { families } from '../../../src/worker/http/metrics.ts';
import { openScrape, type Scrape } from '../../../src/worker/http/scrape.ts';
import { until } from '../../support/processes.ts';
import { openTestRedis } from '../../support/redis.ts';

test('a metric says for how long a target has accepted nothing, once that is a quarter of an hour', async ({
  onTestFinished,
}) => {
  const redis = await openTestRedis();
  const fp = `test-${randomUUID()}`;
  onTestFinished(async () => {
    await redis.unlink(keys.limiter(fp));
    redis.disconnect();
  });
  const samples = async () => {
    const look = openScrape({
      build: { version: '1', revision: '' },
      service: {} as unknown as Scrape['service'],
      redis,
      target: { baseUrl: 'http://127.0.0.1:9', account: '', fp },
      clock: () => performance.now(),
      now: Date.now,
    });
    const seen = await until('Redis answers within the second of a scrape', async () => {
      const one = await look();
      return one.redis && one;
    });
    return families.find(({ name }) => name === 'expunge_nothing_accepted_seconds')!.read(seen);
  };
  const now = Date.now();
  await redis.hset(keys.limiter(fp), { seenAt: now, wantedAt: now, drySince: 1, dryMs: 899_000, dryAnswers: 3 });
  expect(await samples()).toEqual([{ value: 0 }]);
  await redis.hset(keys.limiter(fp), { dryMs: 960_000 });
  expect(await samples()).toEqual([{ value: 960 }]);
});
