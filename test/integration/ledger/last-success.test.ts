import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anyRun, noteSuccess, readSuccesses } from '../../../src/ledger/end-run.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis } from '../../support/redis.ts';

let redis: RedisClient;
const fp = `test-${randomUUID()}`;

beforeAll(async () => {
  redis = await openTestRedis();
});

afterAll(async () => {
  await redis.del(keys.lastSuccess(fp), keys.schedules(fp));
  redis.disconnect();
});

test('the latest run that went well counts, of any run and of the runs of each schedule that there is', async () => {
  await redis.sadd(keys.schedules(fp), 'nightly');
  for (const [of, at] of [
    [anyRun, 2_000],
    [anyRun, 1_000],
    ['nightly', 3_000],
    ['removed', 4_000],
  ] as const)
    await noteSuccess(redis, fp, of, at);
  expect(await readSuccesses(redis, fp)).toEqual({ [anyRun]: 2_000, nightly: 3_000 });
});
