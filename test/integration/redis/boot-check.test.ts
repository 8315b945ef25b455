import { expect, onTestFinished, test } from 'vitest';
import { checkRedis } from '../../../src/redis/boot-check.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { openTestRedis } from '../../support/redis.ts';

const sound = {
  redis_version: '7.0.15',
  run_id: 'abc',
  maxmemory_policy: 'noeviction',
  aof_enabled: '1',
  role: 'master',
};

/** A Redis that answers INFO with these fields, and whose login has all rights. */
function answering(fields: Record<string, string>): RedisClient {
  const lines = Object.entries({ ...sound, ...fields }).map(([name, value]) => `${name}:${value}`);
  return { info: async () => `# Server\r\n${lines.join('\r\n')}\r\n`, eval: async () => [] } as unknown as RedisClient;
}

test('takes the Redis of this test run', async () => {
  const redis = await openTestRedis();
  onTestFinished(() => redis.disconnect());
  expect(await checkRedis(redis)).toMatchObject({ runId: expect.stringMatching(/^\w{40}$/), warnings: [] });
});

test('tells Valkey by its own version', async () => {
  const facts = await checkRedis(answering({ redis_version: '7.2.4', server_name: 'valkey', valkey_version: '8.1.1' }));
  expect(facts).toEqual({ version: '8.1.1', name: 'valkey', runId: 'abc', warnings: [] });
});

test('warns where a crash would lose the ledger', async () => {
  expect((await checkRedis(answering({ aof_enabled: '0' }))).warnings).toEqual([expect.stringContaining('AOF')]);
});

test('warns of files that cannot be written, as check does: that is waited for', async () => {
  const { warnings } = await checkRedis(answering({ aof_last_write_status: 'err' }));
  expect(warnings).toEqual(['this Redis could not write its append-only file']);
});

test.each([
  [{ redis_version: '6.0.16' }, /6\.0\.16 is too old: 6\.2 is needed/],
  [{ redis_version: '' }, /unknown version/],
  [{ maxmemory_policy: 'allkeys-lru' }, /evicts keys \(maxmemory-policy allkeys-lru\)/],
  [{ maxmemory_policy: 'volatile-ttl' }, /evicts keys/],
  [{ cluster_enabled: '1' }, /cluster/],
  [{ role: 'slave' }, /read-only replica/],
])('refuses a Redis with %o', async (fields, words) => {
  await expect(checkRedis(answering(fields))).rejects.toMatchObject({
    code: 'UNREACHABLE',
    message: expect.stringMatching(words),
    next: expect.stringContaining('REDIS_URL'),
  });
});
