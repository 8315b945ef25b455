import { expect, onTestFinished, test } from 'vitest';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { connectLedger, ready } from '../../../src/redis/connect.ts';
import { openOwnRedis } from '../../support/own-redis.ts';

test('a Redis with as many clients as it allows is said to be that', async () => {
  const own = await openOwnRedis(onTestFinished);
  const first = own.connect();
  await first.config('SET', 'maxclients', '1');
  const address = addressFromUrl(own.url, false);
  const redis = connectLedger(address);
  onTestFinished(() => redis.disconnect());
  const refusal = await ready(redis, address, 3_000).catch((error) => error);
  expect(refusal.message).toMatch(/max number of clients reached$/);
  expect(refusal.next).toMatch(/maxclients/);
});
