import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { withAccess } from '../../../src/redis/access.ts';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { openQueueConnection } from '../../../src/redis/connect.ts';
import { until } from '../../support/processes.ts';
import { openLedgerOn } from '../../support/redis.ts';
import { startRedisProcess } from '../../support/redis-process.ts';

test('a password that is replaced in its file is used from the next connect on, for ledger and queue', async () => {
  const server = await startRedisProcess(onTestFinished, {
    args: () => ['--requirepass', 'before'],
    login: { password: 'before' },
  });
  const path = join(server.folder, 'password');
  writeFileSync(path, 'before');
  const address = withAccess(addressFromUrl(`redis://127.0.0.1:${server.port}`, false), { redisPasswordFile: path });
  const [admin, ledger] = await Promise.all([openLedgerOn(address), openLedgerOn(address)]);
  const queue = new Queue('q', { connection: openQueueConnection(address) as never });
  queue.on('error', () => {});
  onTestFinished(async () => {
    await queue.close();
    for (const redis of [admin, ledger]) redis.disconnect();
  });
  expect(await queue.count()).toBe(0);
  await admin.config('SET', 'requirepass', 'after');
  writeFileSync(path, 'after\n');
  const closed = new Promise((resolve) => ledger.once('close', resolve));
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await closed;
  expect(await until('the queue answers', () => queue.count().then(String, () => ''))).toBe('0'); // what was on the wire is refused
  await until('the ledger is back', () => ledger.status === 'ready');
  expect(await ledger.ping()).toBe('PONG');
});
