import { describe, test } from 'vitest';
import { changeRules } from '../../../src/ledger/change-rules.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import type { RunRules } from '../../../src/ledger/run-rules.ts';
import { setMinGrace } from '../../../src/ledger/steer-target.ts';
import { openPaceCalls } from '../../../src/limiter/run-pace.ts';
import { targetOf } from '../../../src/model/target.ts';
import { readClock } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import type { AtEnd } from '../../support/harness.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetTarget } from '../../support/redis-keys.ts';
import { claimChunk, forgetRun, readCells, writeTestRun } from './lone-run.ts';

const redis = await redisDuringTests();
const ledger = openLedger(redis);

const minute = 60_000;
const hour = 60 * minute;
const by = { at: Date.now(), by: 'operator', who: 'ana', reason: 'why' } as const;
let count = 0;

/** A started run with these rules, of a target with this minimum. */
async function openRun(atEnd: AtEnd, rules: Partial<Pick<RunRules, 'graceMs' | 'startAt'>>, minGraceMs = 0) {
  const target = targetOf(`http://127.0.0.1:9/start-time-${process.pid}-${count++}`, '');
  atEnd(() => forgetTarget(target.baseUrl, redis as Parameters<typeof forgetTarget>[1]));
  if (minGraceMs > 0) await setMinGrace(redis, target.fp, minGraceMs, by);
  const before = Math.floor(await readClock(redis, keys.bounds(target.fp)));
  const id = await writeTestRun(redis, [2, 2], null, target, rules);
  atEnd(() => forgetRun(redis, id));
  const steer = (action: 'start' | 'pause') =>
    ledger.steer(id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });
  await steer('start');
  const record = async () => (await readRun(redis, id))!;
  /** The start of the run in ms after it was made; 0 = at once. */
  const startsAfter = async () => {
    const { startsAt } = await record();
    return startsAt && startsAt - before;
  };
  const change = async (wanted: Partial<RunRules>) => changeRules(redis, await record(), wanted, by);
  const setStart = (startsAt: number) => redis.hset(keys.run(id), 'startsAt', startsAt);
  const ofPace = {
    run: keys.run(id),
    members: keys.paceMembers(id),
    quotas: keys.paceQuotas(id),
    refusals: keys.refusals(id),
  };
  const pace = () => openPaceCalls(redis)(ofPace, { process: 'p', wants: true, till: '0', unused: 0, unusedSince: 0 });
  return { id, target, before, steer, record, startsAfter, change, setStart, pace };
}

/** Expects a time that was counted from the clock of Redis after the run was begun: other rules would make it another one by minutes. */
const about = (ms: number) => ({ asymmetricMatch: (value: number) => value >= ms && value < ms + 5 * minute });

describe.concurrent('a run starts', () => {
  test.for<[string, Partial<RunRules>, number, number]>([
    ['at once', {}, 0, 0],
    ['after its grace period', { graceMs: 15 * minute }, 0, 15 * minute],
    ['after the minimum of its target', {}, 10 * minute, 10 * minute],
    ['after the minimum, which no shorter grace period undercuts', { graceMs: minute }, 10 * minute, 10 * minute],
    ['after a grace period that is longer than the minimum', { graceMs: hour }, 10 * minute, hour],
  ])('%s', async ([, rules, minGraceMs, expected], { expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, rules, minGraceMs);
    expect(await run.startsAfter()).toEqual(expected === 0 ? 0 : about(expected));
  });

  test('at its --start-at, unless its grace period or the minimum ends later', async ({ expect, onTestFinished }) => {
    const startAt = Math.floor(Date.now()) + hour;
    const alone = await openRun(onTestFinished, { startAt });
    expect((await alone.record()).startsAt).toBe(startAt);
    const longer = await openRun(onTestFinished, { startAt, graceMs: 2 * hour });
    expect(await longer.startsAfter()).toEqual(about(2 * hour));
    const least = await openRun(onTestFinished, { startAt }, 3 * hour);
    expect(await least.startsAfter()).toEqual(about(3 * hour));
  });
});

describe.concurrent('until its start', () => {
  /** @invariant not-before-start: Nothing of a run is sent before its start, by the clock of Redis. */
  test('no chunk of a run is enqueued or claimed, and its pace is early; afterwards all of it is', async ({
    expect,
    onTestFinished,
  }) => {
    const { id, before, setStart, pace, record } = await openRun(onTestFinished, { graceMs: hour });
    expect(await ledger.enqueue(id)).toEqual([]);
    await redis.hset(keys.open(id), '0', 0); // as if a process of an older release had enqueued it
    expect(await ledger.claim(id, 0)).toBe('running');
    expect((await pace()).state).toBe('early');
    expect(await record()).toMatchObject({ activeMs: 0, attempts: 0, next: 0 });
    await setStart(before - 1);
    expect(await ledger.enqueue(id)).toEqual([0, 1]);
    expect(await ledger.claim(id, 0)).toMatchObject({ epoch: 1 });
    expect((await pace()).state).toBe('running');
  });

  test.for(['a holder that knows every cell', 'any other holder'])(
    'no id is marked, also if the clock of Redis was set back after the claim: %s',
    async (who, { expect, onTestFinished }) => {
      const { id, setStart } = await openRun(onTestFinished, {});
      await ledger.enqueue(id);
      const { epoch, known } = await claimChunk(ledger, id, 0);
      const cells = await readCells(redis, id, 0);
      const step = () =>
        ledger.update({
          run: id,
          chunk: 0,
          epoch,
          results: [],
          wanted: [0, 1],
          ...(who === 'any other holder' ? {} : { known }),
        });
      await setStart(Date.now() + hour); // a clock that is set back by an hour makes the same difference
      expect(await step()).toEqual({ state: 'running', cells: [] });
      expect(await readCells(redis, id, 0)).toEqual(cells);
      await setStart(Date.now() - hour);
      expect((await step()).cells).toHaveLength(2);
      expect(await readCells(redis, id, 0)).not.toEqual(cells);
    },
  );

  test('a clock of Redis that was set back delays the start; times that were ahead move, the start does not', async ({
    expect,
    onTestFinished,
  }) => {
    const { id, record } = await openRun(onTestFinished, { graceMs: hour });
    const { startsAt } = await record();
    await redis.hset(keys.run(id), { activeUntil: Date.now() + 24 * hour, changedAt: Date.now() + 24 * hour });
    expect(await ledger.enqueue(id)).toEqual([]);
    expect((await record()).startsAt).toBe(startsAt);
  });

  test('a pause and a resume change nothing about it', async ({ expect, onTestFinished }) => {
    const { id, steer, record } = await openRun(onTestFinished, { graceMs: hour });
    const { startsAt } = await record();
    await steer('pause');
    await steer('start');
    expect(await record()).toMatchObject({ state: 'running', startsAt });
    expect(await ledger.enqueue(id)).toEqual([]);
  });
});

describe.concurrent('a later command', () => {
  test('moves the start, but never before the minimum of its target', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, { graceMs: hour }, 10 * minute);
    await run.change({ startAt: run.before + 3 * hour });
    expect(await run.startsAfter()).toBe(3 * hour);
    await run.change({ startAt: run.before + 1 });
    expect(await run.startsAfter()).toEqual(about(hour));
    await run.change({ graceMs: 0, startAt: 0 });
    expect(await run.startsAfter()).toEqual(about(10 * minute));
  });

  test('with the same grace period changes nothing: it counts from the moment when the run was made', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished, { graceMs: hour });
    const { startsAt, revision } = await run.record();
    await run.change({ graceMs: hour });
    expect(await run.record()).toMatchObject({ startsAt, revision });
  });

  test('is not bound by a minimum that was set later', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, { graceMs: hour });
    await setMinGrace(redis, run.target.fp, 2 * hour, by);
    await run.change({ graceMs: minute });
    expect(await run.startsAfter()).toEqual(about(minute));
  });
});
