import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { removeOwnQueue } from '../../../src/operations/liveness.ts';
import type { Session } from '../../../src/operations/session.ts';
import { withQueue } from '../../../src/queue/on-demand.ts';
import { openQueue } from '../../../src/queue/queue.ts';
import { countConsumers, ownQueueName } from '../../../src/queue/queues.ts';
import type { QueueConnection } from '../../../src/redis/connect.ts';
import { keys } from '../../../src/redis/keys.ts';
import { invoke } from '../../support/command.ts';
import { makeLogin } from '../../support/login.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { openTestRedis, testRedisAddress, testRedisUrl } from '../../support/redis.ts';
import { redisKeysWith } from '../../support/redis-keys.ts';
import { forgetRun, writeTestRun } from '../ledger/lone-run.ts';

let redis: Redis;
let run: Run;
const leftOfQueue = () => redisKeysWith(`:${ownQueueName(run.id)}:`);

beforeEach(async () => {
  redis = await openTestRedis();
  run = (await readRun(redis, await writeTestRun(redis, [2, 2])))!;
  const address = { fp: run.fp, name: ownQueueName(run.id), connection: testRedisAddress().options };
  const queue = openQueue(address);
  await queue.add([0, 1].map((chunk) => ({ run: run.id, chunk })));
  await queue.close(); // and the command that had it was killed
  expect(await leftOfQueue()).not.toEqual([]);
});
afterEach(async () => {
  await forgetRun(redis, run.id);
  const left = [...(await leftOfQueue()), ...(await redisKeysWith(run.fp))];
  if (left.length > 0) await redis.unlink(...left);
  redis.disconnect();
});

const call = (...args: string[]) => invoke(args, { REDIS_URL: testRedisUrl() }).ended;

test('the queue that a killed command had for its run goes when the run is cancelled', async () => {
  expect(await call('cancel', run.id, '--yes')).toBe(0);
  expect(await leftOfQueue()).toEqual([]);
});

test('the queue that a killed command had for its run goes when the run is removed', async () => {
  await redis.hset(keys.run(run.id), 'state', 'completed');
  expect(await call('runs', 'remove', run.id, '--yes')).toBe(0);
  expect(await leftOfQueue()).toEqual([]);
});

test('the queue that a killed command had for its run goes when the run is left to workers', async () => {
  expect(await call('resume', run.id, '--detach')).toBe(0);
  expect(await leftOfQueue()).toEqual([]);
});

test('the queue of a run is removed by several commands at the same moment without an error', async () => {
  const address = { fp: run.fp, name: ownQueueName(run.id), connection: testRedisAddress().options };
  const queues = Array.from({ length: 8 }, () => openQueue(address));
  for (let round = 0; round < 20; round++) {
    await queues[0]!.add([0, 1].map((chunk) => ({ run: run.id, chunk })));
    await expect(Promise.all(queues.map((queue) => queue.remove()))).resolves.toHaveLength(queues.length);
  }
  for (const queue of queues) await queue.close();
  expect(await leftOfQueue()).toEqual([]);
});

test.each([
  ['stays while its run goes on', false],
  ['goes once its run has ended', true],
])('the queue of a run %s, where Redis does not say whether a command uses it', async (_, isOver) => {
  const own = await openOwnRedis(onTestFinished);
  const admin = own.connect();
  const folder = mkdtempSync(join(tmpdir(), 'expunge-login-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  await makeLogin([admin], folder, own.url, '-client|list');
  const login = { username: 'expunge', password: readFileSync(join(folder, 'password'), 'utf8').trim() };
  const denied = new Redis({ ...admin.options, ...login } as never);
  onTestFinished(() => denied.disconnect());
  const session = { redis: denied, queueConnection: admin.options } as unknown as Session;
  const address = { fp: run.fp, name: ownQueueName(run.id), connection: admin.options as QueueConnection };
  await withQueue(address, (queue) => queue.add([{ run: run.id, chunk: 0 }]));
  expect(await countConsumers(denied, address)).toBeNull();
  await removeOwnQueue(session, { ...run, state: isOver ? 'completed' : 'running' });
  const left = await admin.keys(`*:${ownQueueName(run.id)}:*`);
  expect(left.length === 0).toBe(isOver);
});
