import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readBacklog, readNextAttempt } from '../../../src/ledger/backlog.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { schemaVersion } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

let fp: string; // of a target that only one test has
const now = Date.now();

const redis = await redisDuringTests();
const ledger = openLedger(redis, () => now);

beforeEach(() => {
  fp = `test-${randomUUID()}`;
});
afterEach(async () => {
  for (const run of await redis.smembers(keys.targetRuns(fp))) await forgetRun(redis, run);
  await redis.del(keys.targetRuns(fp));
});

const steer = (run: string, action: 'start' | 'pause') =>
  ledger.steer(run, now, { action, reason: '', by: 'operator', who: 'test' });

/** A run of the test's target; returns its id. */
async function addRun(sizes: number[], perSecond: number | null = null): Promise<string> {
  const run = await writeTestRun(redis, sizes, perSecond);
  await redis.sadd(keys.targetRuns(fp), run);
  return run;
}

test('only ids of running runs that wait for no later pass can be worked on', async () => {
  const run = await addRun([500, 500, 10]);
  expect(await readBacklog(redis, fp, now)).toEqual({
    runs: { planned: 1 },
    pending: 1_010,
    runnable: 0,
  });
  await steer(run, 'start');
  expect(await readBacklog(redis, fp, now)).toEqual({
    runs: { running: 1 },
    pending: 1_010,
    runnable: 1_010,
  });
  await ledger.enqueue(run);
  for (const chunk of [0, 1, 2]) {
    const claim = await ledger.claim(run, chunk);
    if (typeof claim === 'string') throw new Error(claim);
    expect((await readBacklog(redis, fp, now)).runnable).toBe(Math.min(1_010, 500 * (3 - chunk)));
    await ledger.returnChunk({ run, chunk, epoch: claim.epoch, dueInMs: 5_000 });
  }
  expect(await readBacklog(redis, fp, now)).toEqual({
    runs: { running: 1 },
    pending: 1_010,
    runnable: 0,
  });
  expect((await readBacklog(redis, fp, now + 5_000)).runnable).toBe(1_010);
  await steer(run, 'pause');
  expect(await readBacklog(redis, fp, now + 5_000)).toEqual({
    runs: { paused: 1 },
    pending: 1_010,
    runnable: 0,
  });
});

test('a run of another version is not counted: no worker of this one sends its ids', async () => {
  const run = await addRun([500, 10]);
  await steer(run, 'start');
  expect(await readBacklog(redis, fp, now), 'negative control').toMatchObject({ runnable: 510 });
  await redis.hset(keys.run(run), { schema: schemaVersion + 1 });
  expect(await readBacklog(redis, fp, now)).toEqual({ runs: {}, pending: 0, runnable: 0 });
});

test('of a run with a rate of its own no more can be worked on than that lets go in a minute, and nothing of a spent quota', async () => {
  const run = await addRun([500, 500, 10], 2);
  const runnable = async () => (await readBacklog(redis, fp, now)).runnable;
  await steer(run, 'start');
  expect(await runnable()).toBe(120);
  for (const [fields, ids] of [
    [{ rate: '1/3600000' }, 0],
    [{ rate: '100/1000,500/86400000' }, 1_010],
    [{ quotaUntil: String(now + 60_000) }, 0],
    [{ quotaUntil: String(now - 1) }, 1_010],
    [{ rate: 'of another version' }, 0],
    [{ rate: '' }, 1_010],
  ] as const) {
    await redis.hset(keys.run(run), fields);
    expect(await runnable()).toBe(ids);
  }
});

test('what is settled is no longer in the backlog', async () => {
  const run = await addRun([10]);
  await steer(run, 'start');
  await redis.hset(keys.run(run), 'settled', 4);
  expect(await readBacklog(redis, fp, now)).toEqual({ runs: { running: 1 }, pending: 6, runnable: 6 });
});

test('the next retry is that of the first chunk that waits for one, once no other is open', async ({
  onTestFinished,
}) => {
  const run = await writeTestRun(redis, [1, 1]);
  onTestFinished(() => forgetRun(redis, run));
  expect(await readNextAttempt(redis, run)).toBeNull();
  const due = Date.now() + 60_000;
  await redis.zadd(keys.deferred(run), due - 0.5, 1, due + 59_999.5, 0);
  const next = (await readNextAttempt(redis, run))!;
  expect([next >= due - 1, next < due + 59_000]).toEqual([true, true]); // not that of the other one
  await redis.hset(keys.open(run), '0', '1');
  expect(await readNextAttempt(redis, run)).toBeNull();
});

test('a chunk that was deferred without a try, as no permit came, waits for no retry', async ({ onTestFinished }) => {
  const run = await writeTestRun(redis, [1]);
  onTestFinished(() => forgetRun(redis, run));
  await redis.zadd(keys.deferred(run), Date.now() + 60_000, 0);
  expect(await readNextAttempt(redis, run)).toBeNull();
});

test('a run that Redis has forgotten counts nowhere', async () => {
  await redis.sadd(keys.targetRuns(fp), 'gone');
  expect(await readBacklog(redis, fp, now)).toEqual({ runs: {}, pending: 0, runnable: 0 });
});
