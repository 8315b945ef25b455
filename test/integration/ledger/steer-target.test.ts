import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readTargetAudit } from '../../../src/ledger/audit.ts';
import {
  forgetRate,
  pinRate,
  releaseTarget,
  setBudget,
  startTarget,
  stopTarget,
} from '../../../src/ledger/steer-target.ts';
import { type LimiterScope, limiterScopes } from '../../../src/limiter/read-target.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';

// What an action leaves in Redis; what the limiters make of it is in test/integration/limiter/target.test.ts.

let fp: string;
const redis = await redisDuringTests();
beforeEach(() => {
  fp = `test-${randomUUID()}`;
});
afterEach(async () => {
  const limiters = limiterScopes().map((scope) => keys.limiter(fp, scope));
  await redis.unlink(...limiters, keys.pin(fp), keys.stop(fp), keys.targetAudit(fp));
});

const author = { who: 'ana', reason: 'a test', at: 7 };
const rate = parseRate('200/s');
const hour = 3_600_000;

const limiter = (scope: LimiterScope) => redis.hgetall(keys.limiter(fp, scope));
const learned = { state: '{}', rate: '500', phase: 'ramp', high: '9', inFlight: '64', recall: '1' };

describe.each(limiterScopes())('the limiter of %s', (scope) => {
  const write = (fields: Record<string, string | number>) => redis.hset(keys.limiter(fp, scope), fields);

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
    const { validFrom, tat, ...left } = await limiter(scope);
    expect(left).toEqual({ ...learned, turn: '4', epoch: '6', releasedEpoch: '6', released: '1' });
    expect(validFrom).toBe(tat);
    expect(Number(validFrom)).toBeGreaterThanOrEqual(before);
    expect(Math.floor(Number(validFrom))).toBeLessThanOrEqual(Date.now());
    expect(await releaseTarget(redis, fp, author)).toBe(false);
  });

  test('that waits for nothing any more is not released', async () => {
    await write({ ...learned, holdUntil: Date.now() - 60_000, announced: '' });
    const before = await limiter(scope);
    expect(await releaseTarget(redis, fp, author)).toBe(false);
    expect([await limiter(scope), await readTargetAudit(redis, fp)]).toEqual([before, []]);
  });

  test.each([
    ['forget-rate', () => forgetRate(redis, fp, author)],
    ['pin-rate', () => pinRate(redis, fp, rate, author)],
  ])('forgets what it learned by %s, and not what it was told', async (_, forget) => {
    await write({ ...learned, holdUntil: 9, turn: 3, epoch: 5 });
    expect(await forget()).toBe(true);
    expect(await limiter(scope)).toMatchObject({ holdUntil: '9', turn: '4', epoch: '6', dropEpoch: '6' });
    for (const field of Object.keys(learned)) expect(await limiter(scope)).not.toHaveProperty(field);
  });

  test('keeps what it learned when a pin ends', async () => {
    await pinRate(redis, fp, rate, author);
    await write(learned);
    expect(await pinRate(redis, fp, null, author)).toBe(true);
    expect(await limiter(scope)).toEqual(learned);
  });
});

test('of a target that nobody knows nothing is released, forgotten or unpinned, and nothing is written', async () => {
  expect([
    await releaseTarget(redis, fp, author),
    await forgetRate(redis, fp, author),
    await pinRate(redis, fp, null, author),
    (await startTarget(redis, fp, author)).isChanged,
  ]).toEqual([false, false, false, false]);
  expect(await redis.exists(keys.targetAudit(fp), keys.pin(fp), keys.limiter(fp, 'all'))).toBe(0);
});

test('a pin says who pinned, why and when, and goes with its end', async () => {
  expect([await pinRate(redis, fp, rate, author), await pinRate(redis, fp, rate, author)]).toEqual([true, false]);
  expect(await redis.hgetall(keys.pin(fp))).toEqual({
    rate: '200/1000',
    who: 'ana',
    reason: 'a test',
    at: '7',
    pinId: expect.any(String),
  });
  expect(await pinRate(redis, fp, null, author)).toBe(true);
  expect(await redis.exists(keys.pin(fp))).toBe(0);
});

test('every action that changed something is in the audit trail of the target, with who gave it, when and why', async () => {
  await redis.hset(keys.limiter(fp, 'all'), { ...learned, closed: 'unreachable' });
  await releaseTarget(redis, fp, { ...author, at: 1 });
  await forgetRate(redis, fp, { ...author, at: 2 });
  await pinRate(redis, fp, rate, { ...author, at: 3 });
  await pinRate(redis, fp, null, { ...author, at: 4 });
  await stopTarget(redis, fp, { ...author, at: 5 });
  await startTarget(redis, fp, { ...author, at: 6 });
  const by = { by: 'operator', who: 'ana', reason: 'a test' };
  expect(await readTargetAudit(redis, fp)).toEqual([
    { ...by, at: 1, action: 'release' },
    { ...by, at: 2, action: 'forget-rate' },
    { ...by, at: 3, action: 'pin-rate', rate: '200/s' },
    { ...by, at: 4, action: 'pin-rate', rate: null },
    { ...by, at: 5, action: 'stop-all' },
    { ...by, at: 6, action: 'start-all' },
  ]);
});

test('a budget stands beside a pin: each is set, changed and ended alone, and a budget forgets nothing', async () => {
  await redis.hset(keys.limiter(fp, 'all'), learned);
  const budget = parseRate('100000/day');
  expect([await setBudget(redis, fp, budget, author), await setBudget(redis, fp, budget, author)]).toEqual([
    true,
    false,
  ]);
  expect(await limiter('all')).toEqual(learned);
  const said = { budget: '100000/86400000', budgetBy: 'ana', budgetReason: 'a test', budgetAt: '7' };
  const kept = { ...said, budgetId: expect.any(String) };
  await pinRate(redis, fp, rate, author);
  await pinRate(redis, fp, null, author);
  expect(await redis.hgetall(keys.pin(fp))).toEqual(kept);
  expect([await setBudget(redis, fp, null, author), await redis.exists(keys.pin(fp))]).toEqual([true, 0]);
  const audit = (await readTargetAudit(redis, fp)).filter(({ action }) => action === 'budget');
  expect(audit.map(({ budget }) => budget)).toEqual(['100000/day', null]);
});
