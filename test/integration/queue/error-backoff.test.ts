import { describe, test } from 'vitest';
import type { Log } from '../../../src/logger.ts';
import { openConsumer } from '../../../src/queue/consumer.ts';
import { openQueue } from '../../../src/queue/queue.ts';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { parseInfo } from '../../../src/redis/boot-check.ts';
import { openQueueConnection } from '../../../src/redis/connect.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { until } from '../../support/processes.ts';

const chunks = 2_000;

describe('a consumer', () => {
  test('tells once that a Redis rejects its writes, however often it asks, and goes on', async ({
    expect,
    onTestFinished,
  }) => {
    const own = await openOwnRedis(onTestFinished);
    const [admin, told, handled] = [own.connect(), new Set<string>(), new Set<number>()];
    let warnings = 0;
    const warn = (facts: object, message: string) => {
      warnings++;
      told.add(`${message}: ${(facts as { reason: string }).reason}`);
    };
    const log: Log = { debug() {}, info() {}, warn, error: warn };
    const connection = openQueueConnection(addressFromUrl(own.url, false));
    const address = { fp: 'test', name: 'chunks', connection };
    const queue = openQueue(address);
    const consumer = openConsumer({
      address,
      canTakeMore: () => true,
      handle: async ({ chunk }) => {
        handled.add(chunk);
        return 'done';
      },
      log,
      onDue() {},
      requeue() {},
    });
    onTestFinished(async () => {
      await Promise.all([consumer.drain(), queue.close()]);
    });
    await queue.add(Array.from({ length: chunks }, (_, chunk) => ({ run: 'r', chunk })));
    consumer.start();
    await until('chunks arrive', () => handled.size > 10);
    await admin.config('SET', 'min-replicas-to-write', '1');
    expect(handled.size).toBeLessThan(chunks);
    const before = await refusals(admin);
    await until('it was refused a few times', async () => (await refusals(admin)) - before > 10);
    expect(warnings).toBe(told.size);
    expect([...told].every((line) => line.includes('NOREPLICAS'))).toBe(true);
    await admin.config('SET', 'min-replicas-to-write', '0');
    await until('all chunks have arrived', () => handled.size === chunks);
  });
});

async function refusals(admin: { info(section: string): Promise<string> }): Promise<number> {
  return Number(parseInfo(await admin.info('stats')).total_error_replies);
}
