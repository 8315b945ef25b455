import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { addressFromUrl } from '../../../src/redis/address.ts';
import { awaitRedis } from '../../../src/redis/await-redis.ts';
import type { RedisClient } from '../../../src/redis/client.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const address = addressFromUrl('redis://127.0.0.1:6379', false);

/** Waits for a connection that says what the test wants. */
function begin() {
  const redis = Object.assign(new EventEmitter(), { status: 'connecting' });
  const stop = new AbortController();
  const told: string[] = [];
  const waiting = awaitRedis(redis as unknown as RedisClient, address, stop.signal, (words) => told.push(words));
  const fail = (code: string) => redis.emit('error', Object.assign(new Error(code), { code }));
  return { redis, stop, told, waiting, fail };
}

test('tells at once why it waits, when that changes, and again after 5, 10, 20, 40 s and then each minute', async () => {
  const { redis, told, waiting, fail } = begin();
  const toldWithin = async (seconds: number) => {
    for (let n = 0; n < seconds; n++) {
      fail('ECONNREFUSED');
      await vi.advanceTimersByTimeAsync(1_000);
    }
    return told.splice(0);
  };
  fail('ENOENT');
  expect(told.splice(0)).toEqual(['no such socket']);
  expect(await toldWithin(1)).toEqual(['connection refused']);
  expect(await toldWithin(75)).toHaveLength(4);
  expect(await toldWithin(180)).toHaveLength(3);
  redis.emit('ready');
  await waiting;
});

test('says after a while that nothing answers', async () => {
  const { redis, told, waiting } = begin();
  await vi.advanceTimersByTimeAsync(4_900);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(200);
  expect(told).toEqual([expect.stringContaining('no answer yet')]);
  redis.emit('ready');
  await waiting;
});

test('waits for a name that nobody knows yet, and for nothing once it is told to stop', async () => {
  const { stop, told, waiting, fail } = begin();
  fail('ENOTFOUND');
  expect(told).toEqual(['no such host']);
  stop.abort();
  await waiting;
  expect(vi.getTimerCount()).toBe(0);
});

test.each(['EACCES', 'CERT_HAS_EXPIRED'])('does not wait where that is of no use: %s', async (code) => {
  const { waiting, fail } = begin();
  fail(code);
  await expect(waiting).rejects.toMatchObject({ code: 'UNREACHABLE' });
  expect(vi.getTimerCount()).toBe(0);
});
