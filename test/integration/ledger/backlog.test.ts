import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readBacklog } from '../../../src/ledger/backlog.ts';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import { haltRules } from '../../../src/ledger/thresholds.ts';
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
async function addRun(sizes: number[], perSecond: number | null = null, target = fp): Promise<string> {
  const run = await writeTestRun(redis, sizes, perSecond);
  await redis.sadd(keys.targetRuns(target), run);
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

test('of a run with a rate of its own no more can be worked on than that lets go in a minute, and nothing of a spent quota', async ({
  onTestFinished,
}) => {
  const target = `test-${randomUUID()}`;
  const run = await addRun([500, 500, 10], 2, target);
  onTestFinished(async () => {
    await forgetRun(redis, run);
    await redis.del(keys.targetRuns(target));
  });
  const runnable = async () => (await readBacklog(redis, target, now)).runnable;
  await steer(run, 'start');
  expect(await runnable()).toBe(120);
  for (const [fields, ids] of [
    [{ rate: '1/3600000' }, 0],
    [{ rate: '100/1000,500/86400000' }, 1_010],
    [{ quotaUntil: String(now + 60_000) }, 0],
    [{ quotaUntil: String(now - 1) }, 1_010],
    [{ rate: 'of another release' }, 0],
    [{ rate: '' }, 1_010],
  ] as const) {
    await redis.hset(keys.run(run), fields);
    expect(await runnable()).toBe(ids);
  }
});

test('a run that Redis has forgotten counts nowhere', async () => {
  const other = `test-${randomUUID()}`;
  await redis.sadd(keys.targetRuns(other), 'gone');
  expect(await readBacklog(redis, other, now)).toEqual({ runs: {}, pending: 0, runnable: 0 });
  await redis.del(keys.targetRuns(other));
});
