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
  test('tells what was before, and repeating it changes nothing', async ({ onTestFinished }) => {
    const id = await writeTestRun(redis, [1], 200);
    onTestFinished(() => forgetRun(redis, id));
    const ledger = openLedger(redis);
    const rate = parseRate('50/s,1000/day');
    expect(await ledger.changeRate(id, 1, { rate, ...author })).toEqual({ state: 'planned', rate: parseRate('200/s') });
    expect(await redis.hget(keys.run(id), 'rate')).toBe('50/1000,1000/86400000');
    for (const at of [2, 3]) await ledger.changeRate(id, at, { rate, ...author });
    expect(await ledger.changeRate(id, 4, { rate: null, ...author })).toEqual({ state: 'planned', rate });
    expect(await redis.hget(keys.run(id), 'rate')).toBe('');
    const audit = (await redis.lrange(keys.audit(id), 0, -1)).map((entry) => JSON.parse(entry));
    expect(audit.map(({ at, rate }) => [at, rate])).toEqual([
      [4, null],
      [1, '50/s,1000/day'],
    ]);
  });

  test('leaves a run that has ended as it is, and makes none where there is none', async ({ onTestFinished }) => {
    const id = await writeTestRun(redis, [1], 200);
    onTestFinished(() => forgetRun(redis, id));
    const ledger = openLedger(redis);
    await ledger.steer(id, 1, { action: 'cancel', ...author });
    const audited = await redis.llen(keys.audit(id));
    expect(await ledger.changeRate(id, 2, { rate: null, ...author })).toMatchObject({ state: 'cancelled' });
    expect(await redis.hget(keys.run(id), 'rate')).toBe('200/1000');
    expect(await redis.llen(keys.audit(id))).toBe(audited);

    const none = `test-${randomUUID()}`;
    expect(await ledger.changeRate(none, 3, { rate: null, ...author })).toEqual({ state: 'missing', rate: null });
    expect(await redis.exists(keys.run(none), keys.audit(none))).toBe(0);
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
    const ledger = openLedger(redis);
    const run = (await readRun(redis, id))!;
    await startRun(ledger, run, author);
    await ledger.steer(id, 2, { action, ...author, by });
    await startRun(ledger, run, author);
    context.expect(await redis.hget(keys.run(id), 'state')).toBe(after);
  });
});
