import { Queue } from 'bullmq';
import { describe, test } from 'vitest';
import type { Log } from '../../../src/logger.ts';
import { openConsumer } from '../../../src/queue/consumer.ts';
import { openListener } from '../../../src/queue/notifier.ts';
import { notifierQueueName } from '../../../src/queue/queues.ts';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { parseInfo } from '../../../src/redis/boot-check.ts';
import { openQueueConnection } from '../../../src/redis/connect.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { until } from '../../support/processes.ts';

const notifications = 2_000;

describe('what listens to queues', () => {
  test('tells once that a Redis rejects its writes, however often it asks, and goes on', async ({
    expect,
    onTestFinished,
  }) => {
    const own = await openOwnRedis(onTestFinished);
    const [fp, admin, told, heard] = ['test', own.connect(), new Set<string>(), new Set<string>()];
    let warnings = 0;
    const warn = (facts: object, message: string) => {
      warnings++;
      told.add(`${message}: ${(facts as { reason: string }).reason}`);
    };
    const log: Log = { debug() {}, info() {}, warn, error: warn };
    const connection = openQueueConnection(addressFromUrl(own.url, false));
    const queue = new Queue(notifierQueueName('s'), { connection: connection as never, prefix: keys.queuePrefix(fp) });
    queue.on('error', () => {});
    const jobs = Array.from({ length: notifications }, (_, n) => ({ name: 'notify', data: { schedule: `s-${n}` } }));
    const listener = openListener({ fp, source: 's', connection }, (schedule) => void heard.add(schedule), log);
    const consumer = openConsumer({
      address: { fp, name: 'chunks', connection },
      canTakeMore: () => true,
      handle: async () => 'done',
      log,
      onDue() {},
      requeue() {},
    });
    onTestFinished(async () => {
      await Promise.all([listener.drain(), consumer.drain(), queue.close()]);
    });
    await queue.addBulk(jobs);
    listener.start();
    consumer.start();
    await until('notifications arrive', () => heard.size > 10);
    await admin.config('SET', 'min-replicas-to-write', '1');
    expect(heard.size).toBeLessThan(notifications);
    const before = await refusals(admin);
    await until('it was refused a few times', async () => (await refusals(admin)) - before > 10);
    expect(warnings).toBe(told.size);
    expect([...told].every((line) => line.includes('NOREPLICAS'))).toBe(true);
    await admin.config('SET', 'min-replicas-to-write', '0');
    await until('all notifications have arrived', () => heard.size === notifications);
  });
});

async function refusals(admin: { info(section: string): Promise<string> }): Promise<number> {
  return Number(parseInfo(await admin.info('stats')).total_error_replies);
}
