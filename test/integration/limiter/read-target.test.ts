import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { targetLimits } from '../../../src/delete/target-limits.ts';
import type { Answer } from '../../../src/delete/verdict.ts';
import { releaseTarget } from '../../../src/ledger/steer-target.ts';
import { readTargetState } from '../../../src/limiter/read-target.ts';
import { readStops, storedSaying } from '../../../src/limiter/stop.ts';
import { limiterKeys, openTargetCalls } from '../../../src/limiter/target-call.ts';
import { TargetLimiter } from '../../../src/limiter/target-limiter.ts';
import { parseRate, storedRate } from '../../../src/model/rate.ts';
import { keys } from '../../../src/redis/keys.ts';
import type { Token } from '../../../src/token/token.ts';
import { until } from '../../support/processes.ts';
import { redisDuringTests } from '../../support/redis.ts';

const silence = storedSaying({ stop: null, token: null, run: '' });

const redis = await redisDuringTests();

type AtEnd = (task: () => Promise<void>) => void;

/** A limiter of a target of its own, which somebody uses. */
async function openLimiter(atEnd: AtEnd, limit: string | null = null) {
  const fp = randomUUID();
  const owned = limiterKeys(fp);
  const calls = openTargetCalls(redis, owned);
  if (limit !== null) await redis.hset(owned.bounds, 'limit', storedRate(parseRate(limit)));
  const clock = () => performance.now();
  const target = new TargetLimiter({
    run: '',
    calls,
    process: 'p0',
    connections: 16,
    clock,
    isBusy: () => false,
    stopHere: () => null,
    onChange: () => {},
  });
  target.start({ takeStarved: () => false, isPaced: false });
  target.enter();
  atEnd(async () => {
    target.stop();
    await until('nobody calls any more', () => redis.unlink(...Object.values(owned)).then((n) => n === 0));
  });
  return { fp, target };
}

describe.concurrent('reading the limiter of a target', () => {
  test('finds none where nothing was ever sent, and leaves nothing behind', async () => {
    const fp = randomUUID();
    expect(await readTargetState(redis, fp)).toBeNull();
    expect(await redis.exists(keys.limiter(fp), keys.limiterMembers(fp))).toBe(0);
  });

  test('tells of the processes, of the limit and of the wait that a server asked for', async ({ onTestFinished }) => {
    const { fp, target } = await openLimiter(onTestFinished, '200/s');
    const read = () => readTargetState(redis, fp);
    const begun = await until('it has a rate', async () => {
      const state = await readTargetState(redis, fp);
      return (state?.rate ?? 0) > 0 ? state : null;
    });
    expect(begun).toMatchObject({
      processes: 1,
      phase: 'seek',
      rate: 200,
      ceiling: 200,
      limitMet: 0,
      learned: null,
      hold: null,
      outage: null,
    });
    expect(begun!.silentMs).toBeLessThan(5_000);
    expect(begun!.inFlight).toBeGreaterThan(0);
    target.throttleFor(30_000, 'asked for');
    const hold = await until('it is held', async () => (await read())?.hold);
    expect(hold).toEqual({
      kind: 'retry_after',
      reason: 'asked for',
      leftMs: expect.any(Number),
      since: expect.any(Number),
    });
    expect(hold.leftMs).toBeGreaterThan(20_000);
    expect(hold.leftMs).toBeLessThanOrEqual(30_000);
  });

  test('counts the processes that may send, also those that have nothing to do or must wait, and forgets them', async ({
    onTestFinished,
  }) => {
    const { fp, target } = await openLimiter(onTestFinished);
    const alive = async () => (await readStops(redis, fp)).alive;
    await until('it is counted', async () => (await alive()) === 1);
    target.leave();
    target.throttleFor(3_600_000, 'asked for');
    await until('it wants none any more', async () => (await readTargetState(redis, fp))?.processes === 0);
    expect(await alive()).toBe(1);
    const [[process]] = Object.entries(await redis.hgetall(keys.processes(fp))) as [[string, string]];
    target.stop();
    const now = Number((await redis.time())[0]) * 1_000;
    await until('its last call is over', () =>
      redis.hset(keys.processes(fp), process, `${now - 5_001} ${silence}`).then(() => alive().then((n) => n === 0)),
    );
  });

  test('a release ends the wait in the process itself, and answers to what left before it ask in vain', async ({
    onTestFinished,
  }) => {
    const { fp, target } = await openLimiter(onTestFinished);
    onTestFinished(async () => void (await redis.unlink(keys.targetAudit(fp))));
    await until('Redis has answered', () => (target.known?.rate ?? 0) > 0);
    const before = target.recordSent(performance.now());
    const answer = { kind: 'status', status: 429, headers: { 'retry-after': '7200' } } as unknown as Answer;
    const token = { accepted: () => {}, waiting: '' } as unknown as Token;
    const request = { waitStatuses: new Set<number>(), hasFailed: false, authorization: 'Bearer t' };
    const pauses: string[] = [];
    const limits = targetLimits(target, { token, now: Date.now, onLongThrottle: (why) => pauses.push(why) });
    limits.recordAnswer({ epoch: before, wasClose: false, sentAt: 0 }, answer, 10, request);
    await until('it is held for everybody', async () => (await readTargetState(redis, fp))?.hold);
    expect([target.throttledMs > 3_000_000, pauses.length]).toEqual([true, 1]);
    await releaseTarget(redis, fp, { who: 'ana', reason: '', at: 1 });
    await until('it goes on', () => target.throttledMs === 0);
    limits.recordAnswer({ epoch: before, wasClose: false, sentAt: 0 }, answer, 10, request);
    expect([target.throttledMs, pauses.length]).toEqual([0, 1]);
    limits.recordAnswer(
      { epoch: target.recordSent(performance.now()), wasClose: false, sentAt: 0 },
      answer,
      10,
      request,
    );
    expect([target.throttledMs > 3_000_000, pauses.length]).toEqual([true, 2]);
  });

  test('tells of an outage', async ({ onTestFinished }) => {
    const { fp, target } = await openLimiter(onTestFinished);
    await until('Redis has answered', () => target.known);
    const before = Date.now();
    const outage = await until('it is out', async () => {
      for (let i = 0; i < 20; i++) target.observe(0, 'trouble', 1, 'the API answers 503 to everything');
      return (await readTargetState(redis, fp))?.outage;
    });
    expect(outage).toEqual({
      kind: 'trouble',
      reason: 'the API answers 503 to everything',
      since: expect.any(Number),
      countsTries: false,
    });
    expect([outage.since >= before, outage.since <= Date.now()]).toEqual([true, true]);
  });
});
