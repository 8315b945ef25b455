import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { inspect } from 'node:util';
import type { RedisOptions } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { connectLedger, openQueueConnection, ready } from '../../../src/redis/connect.ts';
import { openTestRedis, testRedisAddress } from '../../support/redis.ts';

const canary = 'canary-pa55word';

async function connect(url: string, deadlineMs: number, said: string[] = []) {
  const address = addressFromUrl(url, false);
  const redis = connectLedger(address, (words) => said.push(words));
  onTestFinished(() => redis.disconnect());
  await ready(redis, address, deadlineMs);
  return redis;
}

/** A port of this machine that nobody listens on. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('says in words that nobody listens there', async () => {
  const port = await closedPort();
  await expect(connect(`redis://:${canary}@127.0.0.1:${port}/1`, 300)).rejects.toMatchObject({
    code: 'UNREACHABLE',
    message: `Redis at redis://127.0.0.1:${port}/1: connection refused`,
    next: expect.stringContaining('check REDIS_URL'),
  });
});

test('says that a server accepts connections and never answers', async () => {
  const server = createServer((socket) => onTestFinished(() => void socket.destroy())).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await expect(connect(`redis://127.0.0.1:${port}`, 300)).rejects.toThrow('no answer in 0.3 s');
});

test('shows no password when Redis refuses it', async () => {
  const admin = await openTestRedis();
  onTestFinished(() => admin.disconnect());
  const user = `u${randomBytes(6).toString('hex')}`;
  await admin.acl('SETUSER', user, 'on', '>right', '~*', '+@all');
  onTestFinished(() => void admin.acl('DELUSER', user));
  const { options } = testRedisAddress();
  const address = { ...testRedisAddress(), options: { ...options, username: user, password: canary } };
  const said: string[] = [];
  const redis = connectLedger(address, (words) => said.push(words));
  const error = await ready(redis, address).catch((refused: unknown) => refused);
  expect(error).toMatchObject({ code: 'UNREACHABLE', message: expect.stringContaining('WRONGPASS') });
  expect(inspect([error, said], { depth: 9, showHidden: true })).not.toContain(canary);
});

test('fails ledger commands at once after the connection is lost and comes back by itself', async () => {
  const [redis, other] = [await openTestRedis(), await openTestRedis()];
  onTestFinished(() => [redis, other].forEach((each) => void each.disconnect()));
  const id = await redis.client('ID');
  const closed = new Promise((resolve) => redis.once('close', resolve));
  await other.client('KILL', 'ID', id);
  await closed;
  await expect(redis.ping()).rejects.toThrow();
  await new Promise((resolve) => redis.once('ready', resolve));
  expect(await redis.ping()).toBe('PONG');
});

test('lets queue commands wait for Redis and drops a hung connection after 15 s', () => {
  const options = openQueueConnection(testRedisAddress()) as RedisOptions;
  expect(options).toMatchObject({ maxRetriesPerRequest: null, socketTimeout: 15_000 });
  expect(options.commandTimeout).toBeUndefined();
  expect([1, 5, 50].map((times) => options.retryStrategy?.(times))).toEqual([100, 500, 1_000]);
  expect(options.reconnectOnError?.(new Error('READONLY You cannot write against a read only replica.'))).toBe(2);
});
