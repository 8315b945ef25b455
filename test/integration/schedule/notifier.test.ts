import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { openListener, openNotifier } from '../../../src/queue/notifier.ts';
import { countConsumers, notifierQueueName } from '../../../src/queue/queues.ts';
import { openQueueConnection } from '../../../src/redis/connect.ts';
import { keys } from '../../../src/redis/keys.ts';
import { nextOccurrence } from '../../../src/schedule/occurrences.ts';
import { until } from '../../support/processes.ts';
import { openTestRedis, testRedisAddress } from '../../support/redis.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const connection = () => openQueueConnection(testRedisAddress());

/** Removes what BullMQ left of a target. */
async function forget(fp: string): Promise<void> {
  const redis = await openTestRedis();
  for await (const found of redis.scanStream({ match: `${keys.queuePrefix(fp)}:*` }))
    if ((found as string[]).length > 0) await redis.unlink(...(found as string[]));
  redis.disconnect();
}

describe('the bells of BullMQ', () => {
  const fp = randomUUID();
  let queue: Queue;
  beforeAll(() => {
    queue = new Queue('preview', { connection: connection() as never, prefix: keys.queuePrefix(fp) });
  });
  afterAll(async () => {
    await queue.close();
    await forget(fp);
  });

  it.each([
    ['30 2 * * *', 'America/New_York', '2027-03-13T12:00Z'],
    ['30 1 * * *', 'America/New_York', '2027-11-06T12:00Z'],
    ['*/30 * * * *', 'America/New_York', '2027-11-07T05:45Z'],
    ['30 2 * * *', 'Europe/Berlin', '2027-03-27T12:00Z'],
    ['30 2 * * *', 'Europe/Berlin', '2027-10-30T12:00Z'],
    ['*/30 * * * *', 'Europe/Berlin', '2027-10-31T00:45Z'],
    ['0 0 29 2 *', 'UTC', '2027-01-01T00:00Z'],
  ])('ring for %s in %s when a preview says so, across clock changes', async (cron, tz, from) => {
    for (let n = 0, last = Date.parse(from); n < 3; n++) {
      await queue.upsertJobScheduler('s', { pattern: cron, tz, startDate: new Date(last) });
      const { next } = (await queue.getJobScheduler('s'))!;
      expect(new Date(next!).toISOString()).toBe(new Date(nextOccurrence({ cron, tz }, last)).toISOString());
      last = next!;
    }
  });
});

describe.concurrent('a bell', () => {
  test('is heard by one of those who listen for its source, and by nobody else', async ({ expect, onTestFinished }) => {
    const fp = randomUUID();
    const address = { fp, source: 'expired', connection: connection() };
    const heard: string[] = [];
    const ears = [
      openListener(address, (name) => heard.push(`1 ${name}`), silent),
      openListener(address, (name) => heard.push(`2 ${name}`), silent),
      openListener({ ...address, source: 'other' }, (name) => heard.push(`other ${name}`), silent),
      openListener({ ...address, fp: randomUUID() }, (name) => heard.push(`stranger ${name}`), silent),
    ];
    const bells = openNotifier(address);
    onTestFinished(async () => {
      await Promise.all(ears.map((ear) => ear.drain()));
      await Promise.all([bells.close(), queue.close()]);
      redis.disconnect();
      await forget(fp);
    });
    for (const ear of ears) ear.start();
    const redis = await openTestRedis();
    const queue = new Queue('notifications-expired', {
      connection: connection() as never,
      prefix: keys.queuePrefix(fp),
    });
    const listeners = () => countConsumers(redis, { fp, name: notifierQueueName('expired') });
    await until('both listen', async () => (await listeners()) === 2);
    await bells.ensure('nightly', { cron: '* * * * * *', tz: 'UTC' });
    await bells.ensure('nightly', { cron: '* * * * * *', tz: 'UTC' });
    await until('it rang three times', () => heard.length >= 3);
    expect(heard.every((line) => /^[12] nightly$/.test(line))).toBe(true);
    expect(await queue.getJobSchedulersCount()).toBe(1);
    await bells.remove('nightly');
    expect(await listeners()).toBe(2);
  });

  test('is set again where it rings at other times, or where BullMQ has lost it', async ({
    expect,
    onTestFinished,
  }) => {
    const fp = randomUUID();
    const bells = openNotifier({ fp, source: 'expired', connection: connection() });
    const queue = new Queue('notifications-expired', {
      connection: connection() as never,
      prefix: keys.queuePrefix(fp),
    });
    onTestFinished(async () => {
      await Promise.all([bells.close(), queue.close()]);
      await forget(fp);
    });
    const next = async () => (await queue.getJobScheduler('s'))?.pattern;
    await bells.ensure('s', { cron: '0 3 * * *', tz: 'UTC' });
    expect(await next()).toBe('0 3 * * *');
    await bells.ensure('s', { cron: '0 4 * * *', tz: 'UTC' });
    expect([await next(), await queue.getDelayedCount()]).toEqual(['0 4 * * *', 1]);
    await queue.obliterate({ force: true });
    await bells.ensure('s', { cron: '0 4 * * *', tz: 'UTC' });
    expect([await next(), await queue.getDelayedCount()]).toEqual(['0 4 * * *', 1]);
  });
});
