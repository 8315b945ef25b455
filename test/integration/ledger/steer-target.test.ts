import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readTargetAudit } from '../../../src/ledger/audit.ts';
import { forgetRate, releaseTarget, setLimit, startTarget, stopTarget } from '../../../src/ledger/steer-target.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';

// What an action leaves in Redis; what the limiter makes of it is in test/integration/limiter/target.test.ts.

let fp: string;
const redis = await redisDuringTests();
beforeEach(() => {
  fp = `test-${randomUUID()}`;
});
afterEach(async () => {
  await redis.unlink(keys.limiter(fp), keys.bounds(fp), keys.stop(fp), keys.targetAudit(fp));
});

const author = { who: 'ana', reason: 'a test', at: 7 };
const rate = parseRate('200/s,100000/day');
const hour = 3_600_000;

const limiter = () => redis.hgetall(keys.limiter(fp));
const learned = { state: '{}', rate: '500', phase: 'ramp', high: '9', inFlight: '64', recall: '1' };

describe('the limiter of a target', () => {
  const write = (fields: Record<string, string | number>) => redis.hset(keys.limiter(fp), fields);

  test.each([
    ['a wait', { holdUntil: Date.now() + hour, holdWhy: 'Retry-After 3600' }],
    ['a lower rate', { announced: 1 }],
    [
      'an open circuit',
      { closed: 'unreachable', closedWhy: 'connection refused', closedAt: 1, outageSince: 1, unreachableAt: 1 },
    ],
  ])('is released from %s, under a new epoch', async (_, fields) => {
    await write({ ...learned, ...fields, turn: 3, epoch: 5 });
    const before = Date.now();
    expect(await releaseTarget(redis, fp, author)).toBe(true);
    const { validFrom, tat, ...left } = await limiter();
    expect(left).toEqual({ ...learned, turn: '4', epoch: '6', releasedEpoch: '6', released: '1' });
    expect([validFrom, Number(validFrom) >= before, Number(validFrom) < Date.now() + 1]).toEqual([tat, true, true]);
    expect(await releaseTarget(redis, fp, author)).toBe(false);
  });

  test('that waits for nothing any more is not released', async () => {
    await write({ ...learned, holdUntil: Date.now() - 60_000, announced: '' });
    const before = await limiter();
    expect(await releaseTarget(redis, fp, author)).toBe(false);
    expect([await limiter(), await readTargetAudit(redis, fp)]).toEqual([before, []]);
  });

  test('forgets what it learned by forget-rate, and not what it was told', async () => {
    await write({ ...learned, holdUntil: 9, turn: 3, epoch: 5 });
    expect(await forgetRate(redis, fp, author)).toBe(true);
    expect(await limiter()).toMatchObject({ holdUntil: '9', turn: '4', epoch: '6', dropEpoch: '6' });
    for (const field of Object.keys(learned)) expect(await limiter()).not.toHaveProperty(field);
  });

  test('keeps what it learned when a limit begins, changes and ends', async () => {
    await write(learned);
    for (const limit of [rate, parseRate('9/day'), null]) expect(await setLimit(redis, fp, limit, author)).toBe(true);
    expect(await limiter()).toEqual(learned);
  });
});

test('of a target that nobody knows nothing is released, forgotten or ended, and nothing is written', async () => {
  expect([
    await releaseTarget(redis, fp, author),
    await forgetRate(redis, fp, author),
    await setLimit(redis, fp, null, author),
    (await startTarget(redis, fp, author)).isChanged,
  ]).toEqual([false, false, false, false]);
  expect(await redis.exists(keys.targetAudit(fp), keys.bounds(fp), keys.limiter(fp))).toBe(0);
});

test('a limit says who set it, why and when, and goes with its end', async () => {
  expect([await setLimit(redis, fp, rate, author), await setLimit(redis, fp, rate, author)]).toEqual([true, false]);
  expect(await redis.hgetall(keys.bounds(fp))).toEqual({
    limit: '200/1000,100000/86400000',
    limitBy: 'ana',
    limitReason: 'a test',
    limitAt: '7',
    limitId: expect.any(String),
  });
  expect(await setLimit(redis, fp, null, author)).toBe(true);
  expect(await redis.exists(keys.bounds(fp))).toBe(0);
});

test('every action that changed something is in the audit trail of the target, with who gave it, when and why', async () => {
  await redis.hset(keys.limiter(fp), { ...learned, closed: 'unreachable' });
  await releaseTarget(redis, fp, { ...author, at: 1 });
  await forgetRate(redis, fp, { ...author, at: 2 });
  await setLimit(redis, fp, rate, { ...author, at: 3 });
  await setLimit(redis, fp, null, { ...author, at: 4 });
  await stopTarget(redis, fp, { ...author, at: 5 });
  await startTarget(redis, fp, { ...author, at: 6 });
  const by = { by: 'operator', who: 'ana', reason: 'a test' };
  expect(await readTargetAudit(redis, fp)).toEqual([
    { ...by, at: 1, action: 'release' },
    { ...by, at: 2, action: 'forget-rate' },
    { ...by, at: 3, action: 'limit', limit: '200/s,100000/day' },
    { ...by, at: 4, action: 'limit', limit: null },
    { ...by, at: 5, action: 'stop-all' },
    { ...by, at: 6, action: 'start-all' },
  ]);
});
