import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { haltRules } from '../../../src/guard/thresholds.ts';
import { readBacklog } from '../../../src/ledger/backlog.ts';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

let redis: RedisClient;
let ledger: Ledger;
const fp = `test-${randomUUID()}`;
const now = Date.now();

beforeAll(async () => {
  redis = await openTestRedis();
  ledger = openLedger(redis, haltRules, () => now);
});

afterAll(async () => {
  for (const run of await redis.smembers(keys.targetRuns(fp))) await forgetRun(redis, run);
  await redis.del(keys.targetRuns(fp));
  redis.disconnect();
});

const steer = (run: string, action: 'start' | 'pause') =>
  ledger.steer(run, now, { action, reason: '', by: 'operator', who: 'test' });

/** A run of this file's target; returns its id. */
async function addRun(sizes: number[]): Promise<string> {
  const run = await writeTestRun(redis, sizes);
  await redis.sadd(keys.targetRuns(fp), run);
  return run;
}

test('only ids of running runs that wait for no later pass can be worked on', async () => {
  const run = await addRun([500, 500, 10]);
  expect(await readBacklog(redis, fp, now)).toEqual({ runs: { planned: 1 }, pending: 1_010, runnable: 0 });
  await steer(run, 'start');
  expect(await readBacklog(redis, fp, now)).toEqual({ runs: { running: 1 }, pending: 1_010, runnable: 1_010 });
  await ledger.feed(run);
  for (const chunk of [0, 1, 2]) {
    const claim = await ledger.claim(run, chunk);
    if (typeof claim === 'string') throw new Error(claim);
    expect((await readBacklog(redis, fp, now)).runnable).toBe(Math.min(1_010, 500 * (3 - chunk)));
    await ledger.handBack(run, chunk, claim.epoch, 5_000);
  }
  expect(await readBacklog(redis, fp, now)).toEqual({ runs: { running: 1 }, pending: 1_010, runnable: 0 });
  expect((await readBacklog(redis, fp, now + 5_000)).runnable).toBe(1_010);
  await steer(run, 'pause');
  expect(await readBacklog(redis, fp, now + 5_000)).toEqual({ runs: { paused: 1 }, pending: 1_010, runnable: 0 });
});

test('a run that Redis has forgotten counts nowhere', async () => {
  const other = `test-${randomUUID()}`;
  await redis.sadd(keys.targetRuns(other), 'gone');
  expect(await readBacklog(redis, other, now)).toEqual({ runs: {}, pending: 0, runnable: 0 });
  await redis.del(keys.targetRuns(other));
});
