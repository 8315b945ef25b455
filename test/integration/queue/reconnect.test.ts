import { describe, test, vi } from 'vitest';
import { openConsumer } from '../../../src/queue/consumer.ts';
import { openQueue } from '../../../src/queue/queue.ts';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { openQueueConnection } from '../../../src/redis/connect.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { until } from '../../support/processes.ts';

describe('a queue whose first command was refused', () => {
  test('is filled and consumed once Redis admits its login', async ({ expect, onTestFinished }) => {
    const warnings = vi.spyOn(console, 'warn').mockImplementation(() => {}); // of ioredis, that it has no ready check
    onTestFinished(() => warnings.mockRestore());
    const own = await openOwnRedis(onTestFinished);
    const admin = own.connect();
    await admin.acl('SETUSER', 'late', 'on', '>secret', '~*', '&*', '+@all', '-info');
    const redis = addressFromUrl(own.url, false);
    const login = { username: 'late', password: 'secret' };
    const connection = openQueueConnection({ ...redis, options: { ...redis.options, ...login } });
    const address = { fp: 'test', name: 'chunks', connection };
    const [handled, refused] = [new Set<number>(), new Set<string>()];
    const warn = (_facts: object, message: string) => void refused.add(message);
    const log = { debug() {}, info() {}, warn, error: warn };
    const queue = openQueue(address);
    const consumer = openConsumer({
      address,
      canTakeMore: () => true,
      log,
      onDue() {},
      requeue() {},
      handle: async ({ chunk }) => {
        handled.add(chunk);
        return 'done';
      },
    });
    onTestFinished(async () => {
      await Promise.all([consumer.drain(), queue.close()]);
    });
    consumer.start();
    await expect(queue.add([{ run: 'r', chunk: 1 }])).rejects.toThrow('NOPERM');
    await until('the consumer was refused', () => refused.size === 1);
    await admin.acl('SETUSER', 'late', '+info');
    await queue.add([{ run: 'r', chunk: 1 }]);
    await until('the chunk is handled', () => handled.has(1));
  });
});
