import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Redis, RedisOptions } from 'ioredis';
import { afterAll, inject } from 'vitest';
import { addressFromUrl, type RedisAddress } from '../../src/redis/address.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { connectLedger, ready } from '../../src/redis/connect.ts';
import { readContainer } from '../../src/redis/private/container.ts';
import { privatePlace } from '../../src/redis/private/place.ts';
import { stopPrivateRedis } from '../../src/redis/private/stop.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
}

/** REDIS_URL of this test run, for commands that tests start. Tests share it: they tell apart by their run ids. */
export function testRedisUrl(): string {
  return inject('redisUrl');
}

/** The same as an address. */
export function testRedisAddress(): RedisAddress {
  return addressFromUrl(testRedisUrl(), true);
}

/** A ledger connection to the Redis of this test run, ready to use. Disconnect it at the end of the test. */
export async function openTestRedis(): Promise<Redis> {
  return (await openLedgerOn(testRedisAddress())) as Redis; // never a cluster: it is one server
}

/** The same until the tests of a file are over. The file calls it before its tests. */
export async function redisDuringTests(): Promise<Redis> {
  const redis = await openTestRedis();
  afterAll(() => redis.disconnect());
  return redis;
}

/** One for looking at what commands have done: a test process that gets no CPU for a while does not take it for a Redis that hangs. */
export async function openPatientRedis(): Promise<Redis> {
  const patience = { commandTimeout: 60_000, socketTimeout: 60_000 };
  return (await openLedgerOn(testRedisAddress(), patience)) as Redis;
}

/** A ledger connection to any Redis, ready to use. */
export async function openLedgerOn(address: RedisAddress, other: RedisOptions = {}): Promise<RedisClient> {
  const redis = connectLedger(address);
  Object.assign(redis.options, other); // it connects only now
  await ready(redis, address);
  return redis;
}

/** REDIS_URL that leads to the same server as this address. */
export function urlOf({ options }: RedisAddress): string {
  if (options.path) return `unix://${encodeURI(options.path)}`;
  return `redis://:${encodeURIComponent(options.password ?? '')}@${options.host}:${options.port}`;
}

/** A new state folder for one test. Give it to `removeStateDir` at the end. */
export function makeStateDir(): string {
  return mkdtempSync(join(tmpdir(), 'expunge-test-'));
}

/** Ends the private Redis of a state folder and removes every trace of it. */
export async function removeStateDir(stateDir: string): Promise<void> {
  const place = privatePlace(stateDir);
  const container = readContainer(place);
  await stopPrivateRedis(stateDir);
  if (container) execFileSync(container.engine, ['volume', 'rm', '--force', container.name]);
  if (place.socketLink) rmSync(dirname(place.socket), { recursive: true, force: true });
  rmSync(stateDir, { recursive: true, force: true });
}
