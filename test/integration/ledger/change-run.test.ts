import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { startRun } from '../../../src/ledger/start-run.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

const redis = await redisDuringTests();

const author = { by: 'operator', who: 'test', reason: '' } as const;

describe.concurrent('changing the rate of a run', () => {
  test('changes what is named and tells what was before', async ({ onTestFinished }) => {
    const id = await writeTestRun(redis, [1], 200);
    onTestFinished(() => forgetRun(redis, id));
    const ledger = openLedger(redis, []);
    const before = { state: 'planned', rate: parseRate('200/s'), burst: null };
    expect(await ledger.changeRate(id, 1, { burst: 7, ...author })).toEqual(before);
    expect(await redis.hmget(keys.run(id), 'rate', 'burst')).toEqual(['200/1000', '7']);
    const rate = parseRate('50/s,1000/day');
    expect(await ledger.changeRate(id, 2, { rate, ...author })).toEqual({ ...before, burst: 7 });
    expect(await ledger.changeRate(id, 3, { rate: null, burst: null, ...author })).toEqual({
      ...before,
      rate,
      burst: 7,
    });
    expect(await redis.hmget(keys.run(id), 'rate', 'burst')).toEqual(['', '']);
    const audit = (await redis.lrange(keys.audit(id), 0, -1)).map((entry) => JSON.parse(entry));
    expect(audit.map(({ at, rate, burst }) => [at, rate, burst])).toEqual([
      [3, null, null],
      [2, '50/s,1000/day', undefined],
      [1, undefined, 7],
    ]);
  });

  test('leaves a run that has ended as it is, and makes none where there is none', async ({ onTestFinished }) => {
    const id = await writeTestRun(redis, [1], 200);
    onTestFinished(() => forgetRun(redis, id));
    const ledger = openLedger(redis, []);
    await ledger.steer(id, 1, { action: 'cancel', ...author });
    const audited = await redis.llen(keys.audit(id));
    expect(await ledger.changeRate(id, 2, { rate: null, ...author })).toMatchObject({ state: 'cancelled' });
    expect(await redis.hget(keys.run(id), 'rate')).toBe('200/1000');
    expect(await redis.llen(keys.audit(id))).toBe(audited);

    const none = `test-${randomUUID()}`;
    expect(await ledger.changeRate(none, 3, { rate: null, ...author })).toEqual({
      state: 'missing',
      rate: null,
      burst: null,
    });
    expect(await redis.exists(keys.run(none), keys.audit(none))).toBe(0);
  });
});

describe.concurrent('changing the priority of a run', () => {
  test('changes how many of its chunks may wait, from the next enqueue on', async ({ onTestFinished }) => {
    const id = await writeTestRun(
      redis,
      Array.from({ length: 40 }, () => 1),
    );
    onTestFinished(() => forgetRun(redis, id));
    const ledger = openLedger(redis, []);
    await ledger.steer(id, 1, { action: 'start', ...author });
    expect(await ledger.enqueue(id)).toEqual([0, 1, 2, 3]);
    expect(await ledger.changePriority(id, 2, { priority: 'high', ...author })).toEqual({
      state: 'running',
      priority: 'normal',
    });
    expect(await ledger.enqueue(id)).toHaveLength(12);
    await ledger.changePriority(id, 4, { priority: 'low', ...author });
    for (let chunk = 0; chunk < 15; chunk++) expect(await ledger.claim(id, chunk)).toMatchObject({ enqueued: [] });
    expect(await ledger.claim(id, 15)).toMatchObject({ enqueued: [16] });
    expect((await redis.lrange(keys.audit(id), 0, 1)).map((entry) => JSON.parse(entry))).toMatchObject([
      { at: 4, action: 'priority', priority: 'low', who: 'test' },
      { at: 2, action: 'priority', priority: 'high', who: 'test' },
    ]);
  });
});

describe.concurrent('a run that was read as planned, and started late', () => {
  test.for([
    ['pause', 'interrupt', 'running'],
    ['pause', 'operator', 'paused'],
    ['halt', 'guard', 'halted'],
  ] as const)('which others started and a %s by %s stopped is then %s', async ([action, by, after], context) => {
    const id = await writeTestRun(redis, [1], 200);
    context.onTestFinished(() => forgetRun(redis, id));
    const ledger = openLedger(redis, []);
    const run = (await readRun(redis, id))!;
    await startRun(ledger, run, author);
    await ledger.steer(id, 2, { action, ...author, by });
    await startRun(ledger, run, author);
    context.expect(await redis.hget(keys.run(id), 'state')).toBe(after);
  });
});
