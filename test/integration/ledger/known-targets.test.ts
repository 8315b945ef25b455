import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { isLive, liveRuns, noteTarget } from '../../../src/ledger/known-targets.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { storedSaying } from '../../../src/limiter/stop.ts';
import { knownTargets } from '../../../src/lookup/run-index.ts';
import { targetOf } from '../../../src/model/target.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

const silence = storedSaying({ stop: null, token: null, run: '' });

const redis = await redisDuringTests();

const find = async (account: string) => (await knownTargets(redis)).find((target) => target.account === account);

test('a target is known by its run, and by its worker alone for 90 days', async ({ onTestFinished }) => {
  const id = await writeTestRun(redis, [1]);
  onTestFinished(() => forgetRun(redis, id));
  expect(await find(id)).toMatchObject({ baseUrl: 'http://127.0.0.1:9', live: { planned: 1 }, stops: { alive: 0 } });

  const idle = targetOf('http://127.0.0.1:9', randomUUID());
  const other = targetOf('http://127.0.0.1:9', randomUUID());
  onTestFinished(async () => {
    const noted = [idle, other].map(({ baseUrl, account }) => JSON.stringify([baseUrl, account]));
    await redis.zrem(keys.targets, ...noted);
    await redis.unlink(keys.processes(idle.fp));
  });
  const now = Date.now();
  await noteTarget(redis, idle, now - 90 * 86_400_000 + 60_000);
  const [seconds] = (await redis.time()) as unknown as [string];
  await redis.hset(keys.processes(idle.fp), 'p0', `${Number(seconds) * 1_000} ${silence}`);
  expect(await find(idle.account)).toEqual({
    ...idle,
    live: {},
    stops: {
      target: null,
      processes: [],
      tokenless: [],
      alive: 1,
      said: [{ stop: null, token: null, run: '' }],
    },
  });
  await noteTarget(redis, other, now + 60_001);
  expect([await find(idle.account), (await find(other.account))?.fp]).toEqual([undefined, other.fp]);
});

test('a target is live while it has a run that is not finalized, or a process', async ({ onTestFinished }) => {
  const target = targetOf('http://127.0.0.1:9', randomUUID());
  const runs = [0, 1, 2].map(() => writeTestRun(redis, [1], null, target));
  const [first, second, third] = (await Promise.all(runs)) as [string, string, string];
  onTestFinished(async () => {
    for (const id of [first, second, third]) await forgetRun(redis, id);
    await redis.unlink(keys.processes(target.fp));
  });
  const ledger = openLedger(redis);
  const steer = (id: string, action: 'start' | 'cancel') =>
    ledger.steer(id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });
  const known = async () => (await find(target.account))!;
  await steer(first, 'start');
  expect(await known()).toMatchObject({ live: { planned: 2, running: 1 } });
  expect([liveRuns(await known()), isLive(await known())]).toEqual([3, true]);
  for (const id of [first, second, third]) await steer(id, 'cancel');
  expect((await known()).live).toEqual({});
  expect([liveRuns(await known()), isLive(await known())]).toEqual([0, false]);
  await redis.hset(keys.processes(target.fp), 'p0', `${Date.now()} ${silence}`);
  expect(isLive(await known())).toBe(true);
});
