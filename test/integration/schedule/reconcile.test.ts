import { describe, test } from 'vitest';
import { readSources } from '../../../src/config/list-source.ts';
import { readCompleted } from '../../../src/ledger/end-run.ts';
import { isSealed } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { acquireLease } from '../../../src/schedule/lease.ts';
import { reconcile } from '../../../src/schedule/reconcile.ts';
import { readAudit, steerSchedule, updateSchedule } from '../../../src/schedule/schedule-store.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from './schedule-harness.ts';

const [one, two, three] = [start + minute, start + 2 * minute, start + 3 * minute];

/** The schedule has had some lists of ten rows, and all of their runs have ended. */
async function usual(stage: ScheduleHarness, slots: number): Promise<void> {
  for (let n = 1; n <= slots; n++) {
    stage.list(someIds(`usual-${n}`, 10));
    await stage.at(start + n * minute);
    await stage.finish((await stage.schedule()).lastRun);
  }
  await stage.at(stage.now + 1_000);
}

describe.concurrent('a slot', () => {
  test('becomes a detached run that its workers may take', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(someIds('v', 20));
    await stage.at(one - 1);
    expect(await stage.runs()).toEqual([]);
    await stage.at(one);
    const [run] = await stage.runs();
    expect(run).toMatchObject({ state: 'running', detached: true, rows: 20, note: 'OPS-1' });
    expect(run!.createdBy).toBe('schedule nightly on worker@test');
    expect(await stage.redis.sismember(keys.targetRuns(stage.target.fp), run!.id)).toBe(1);
    expect(await stage.history()).toMatchObject([{ slot: one, outcome: 'started', run: run!.id, rows: 20 }]);
  });

  test('has one run, however often its bell rings, and wherever', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(someIds('v', 20));
    stage.now = one;
    const ring = () => reconcile(stage.work, 'nightly', new AbortController().signal);
    await Promise.all(Array.from({ length: 8 }, ring));
    await Promise.all(Array.from({ length: 8 }, ring));
    expect(await stage.runs()).toHaveLength(1);
    expect(await stage.history()).toHaveLength(1);
  });

  test('has one run where two workers define its source differently', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(someIds('v', 20));
    const other = readSources({ expired: { command: ['seq', '-f', 'other-%g', '30'] } });
    await Promise.all([stage.at(one), stage.at(one, { sources: other, who: 'other@test' })]);
    await stage.at(one, { sources: other, who: 'other@test' });
    expect(await stage.runs()).toHaveLength(1);
  });

  test('has one run also where two processes both believe to hold the lease of the schedule', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    const { redis, target } = stage;
    const first = (await acquireLease(redis, target.fp, 'nightly', new AbortController().signal))!;
    await redis.del(keys.scheduleLease(target.fp, 'nightly')); // as if it had hung for 15 s
    const second = (await acquireLease(redis, target.fp, 'nightly', new AbortController().signal))!;
    const claim = (run: string) => ({ claim: { slot: one, run }, fields: { lastRun: run } });
    expect(await updateSchedule(redis, first, claim('run-1'))).toBe('lost');
    expect(await updateSchedule(redis, second, claim('run-2'))).toBe('done');
    expect(await updateSchedule(redis, second, claim('run-3'))).toBe('taken');
    expect((await stage.schedule()).lastRun).toBe('run-2');
    await Promise.all([first.release(), second.release()]);
  });

  test('is none of a worker that does not have its source', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add({ from: 'elsewhere' });
    await stage.at(one);
    expect([await stage.runs(), await stage.history()]).toEqual([[], []]);
  });

  test('has a run after all if the first process died while it made one', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    const stop = new AbortController();
    const sources = readSources({ expired: { command: ['sleep', '60'] } });
    stage.now = one;
    const dying = reconcile({ ...stage.work, sources }, 'nightly', stop.signal);
    await expect.poll(async () => (await stage.schedule()).waiting).toBe(one);
    stop.abort();
    await dying;
    expect(await stage.history()).toEqual([]);
    stage.list(someIds('v', 5));
    await stage.at(one + 5_000);
    expect(await stage.history()).toMatchObject([{ slot: one, outcome: 'started' }]);
  });

  test('has one run if the first process died between writing it and starting it', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(someIds('v', 5));
    await stage.at(one);
    const [run] = await stage.runs();
    // Written, not the run of the slot yet: nobody would ever start it.
    await stage.redis.hset(keys.run(run!.id), 'state', 'planned');
    await stage.redis.hset(keys.schedule(stage.target.fp, 'nightly'), {
      preparing: run!.id,
      lastRun: '',
      waiting: one,
    });
    await stage.redis.del(keys.scheduleSlot(stage.target.fp, 'nightly', one));
    stage.list(someIds('w', 6));
    await stage.at(one + 5_000);
    expect((await stage.runs()).map(({ rows, state }) => [rows, state])).toEqual([[6, 'running']]);
    // The run of the slot, not started yet.
    const { lastRun } = await stage.schedule();
    await stage.redis.hset(keys.run(lastRun), 'state', 'planned');
    await stage.at(one + 6_000);
    expect((await stage.runs()).map(({ id, state }) => [id, state])).toEqual([[lastRun, 'running']]);
  });

  test('has no run while the same list is under way by hand', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(someIds('v', 5));
    await stage.at(one);
    const { lastRun } = await stage.schedule();
    await stage.redis.hset(keys.schedule(stage.target.fp, 'nightly'), { lastRun: '', lastSha256: '' });
    await stage.at(two);
    const [entry] = await stage.history();
    expect(entry).toMatchObject({ outcome: 'skipped', reason: `run ${lastRun} is deleting the same list` });
    expect(await stage.runs()).toHaveLength(1);
  });
});

describe.concurrent('while the last run has not ended, a slot', () => {
  test('is skipped', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(someIds('a', 5));
    await stage.at(one);
    stage.list(someIds('b', 5));
    await stage.at(two);
    await stage.at(three);
    const { lastRun } = await stage.schedule();
    const reason = `run ${lastRun} has not ended`;
    expect(await stage.runs()).toHaveLength(1);
    expect(await stage.history()).toMatchObject([
      { slot: three, slots: 2, outcome: 'skipped', reason },
      { run: lastRun },
    ]);
    await stage.finish(lastRun);
    await stage.at(three + minute);
    expect(await stage.runs()).toHaveLength(2);
    expect((await stage.history()).at(-1)!.ended).toMatchObject({ state: 'completed' });
    expect(await readCompleted(stage.redis, stage.target.fp)).toEqual({ nightly: three });
  });

  test('waits, one of them, by queue-one', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add({ overlap: 'queue-one' });
    stage.list(someIds('a', 5));
    await stage.at(one);
    stage.list(someIds('b', 5));
    await stage.at(two);
    await stage.at(three);
    expect(await stage.runs()).toHaveLength(1);
    await stage.finish((await stage.schedule()).lastRun);
    await stage.at(three + 1_000);
    expect(await stage.runs()).toHaveLength(2);
    await stage.finish((await stage.schedule()).lastRun);
    await stage.at(three + 2_000);
    expect(await stage.runs()).toHaveLength(2);
    expect((await stage.history()).map(({ outcome, slot }) => [outcome, slot])).toEqual([
      ['started', two],
      ['skipped', three],
      ['started', one],
    ]);
  });

  test('cancels it, by cancel-other', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add({ overlap: 'cancel-other' });
    stage.list(someIds('a', 5));
    await stage.at(one);
    await stage.at(two); // nobody holds its chunks, so it is cancelled at once; the same list is no reason to pause
    await stage.at(two + 1_000);
    const [first, second] = await stage.runs();
    expect([first!.state, second!.state]).toEqual(['cancelled', 'running']);
    expect([first!.who, first!.reason]).toEqual(['schedule nightly', 'the next slot has come']);
    expect((await stage.runs()).filter(({ state }) => !isSealed(state))).toHaveLength(1);
  });
});

describe.concurrent('slots that nobody saw to in time', () => {
  test('are missed by "none"', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(someIds('v', 5));
    await stage.at(three + 45_000);
    expect(await stage.runs()).toEqual([]);
    expect(await stage.history()).toMatchObject([
      { outcome: 'missed', slots: 3, slot: three, reason: 'seen 45 s late' },
    ]);
    await stage.at(three + minute);
    expect(await stage.runs()).toHaveLength(1);
  });

  test('have one run by "latest", not one each', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add({ missed: 'latest' });
    stage.list(someIds('v', 5));
    await stage.at(three + 45_000);
    await stage.at(three + 46_000);
    expect(await stage.runs()).toHaveLength(1);
    expect(await stage.history()).toMatchObject([
      { outcome: 'started', slot: three },
      { outcome: 'missed', slots: 2, slot: three - minute },
    ]);
  });

  test('are none while it was paused', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add({ missed: 'latest' });
    stage.list(someIds('v', 5));
    const order = (at: number) => ({ at, by: 'operator', who: 'ana@test', reason: 'audit' }) as const;
    await steerSchedule(stage.redis, stage.target.fp, 'nightly', 'pause', order(start));
    await stage.at(three);
    await steerSchedule(stage.redis, stage.target.fp, 'nightly', 'resume', order(three + 1_000));
    await stage.at(three + 2_000);
    expect(await stage.runs()).toEqual([]);
    await stage.at(three + minute);
    expect(await stage.runs()).toHaveLength(1);
  });
});

describe.concurrent('a schedule is paused, and says why, by', () => {
  test.for<[string, (stage: ScheduleHarness) => Promise<void>, string, RegExp]>([
    [
      'a list over --max-deletes',
      async (stage) => stage.list(someIds('x', 101)),
      'too_many',
      /holds 101 ids, --max-deletes allows 100/,
    ],
    ['an empty list', async (stage) => stage.list([]), 'empty', /the list is empty: 0 rows/],
    ['the list of last time', async () => {}, 'same', /the same as last time, that of run /],
    [
      'a list that has grown',
      async (stage) => stage.list(someIds('x', 31)),
      'growth',
      /31 rows, more than 3 × the usual 10/,
    ],
  ])('%s', async ([, prepare, guard, words], { expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    await usual(stage, 3);
    await prepare(stage);
    await stage.at(start + 4 * minute);
    expect(await stage.runs()).toHaveLength(3);
    expect(await stage.schedule()).toMatchObject({
      state: 'paused',
      reason: expect.stringMatching(words),
      pausedBy: guard,
    });
    expect(await stage.history()).toMatchObject([{ outcome: 'refused' }, {}, {}, {}]);
    const [entry] = await readAudit(stage.redis, stage.target.fp, 'nightly');
    expect(entry).toMatchObject({
      action: 'pause',
      by: 'guard',
      guard,
      who: '',
      reason: expect.stringMatching(words),
    });
    await stage.at(start + 5 * minute);
    expect(await stage.runs()).toHaveLength(3);
  });

  test('a run that was halted', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(someIds('v', 5));
    await stage.at(one);
    const { lastRun } = await stage.schedule();
    const halt = { action: 'halt', reason: 'all answered 403', by: 'guard', who: '', halt: 'forbidden' } as const;
    await stage.work.ledger.steer(lastRun, stage.now, halt);
    await stage.at(one + 1_000);
    expect(await stage.schedule()).toMatchObject({
      state: 'paused',
      reason: `its run ${lastRun} is halted: all answered 403`,
      pausedBy: 'halted',
      who: '',
    });
  });

  test('nobody who resumed it: then the next list passes that guard, once', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    await usual(stage, 3);
    stage.list(someIds('x', 31));
    await stage.at(start + 4 * minute);
    const order = { at: stage.now, by: 'operator', who: 'ana@test', reason: 'the list is right' } as const;
    await steerSchedule(stage.redis, stage.target.fp, 'nightly', 'resume', order);
    await stage.at(start + 5 * minute);
    expect(await stage.runs()).toHaveLength(4);
    await stage.finish((await stage.schedule()).lastRun);
    stage.list(someIds('y', 32));
    await stage.at(start + 6 * minute);
    expect(await stage.schedule()).toMatchObject({ state: 'paused', pausedBy: 'growth' });
    expect(await stage.runs()).toHaveLength(4);
  });
});

describe.concurrent('no run was made for a slot, and the next one has its try, if the source', () => {
  test.for<[string, object, RegExp]>([
    ['fails after it printed ids', { command: ['sh', '-c', 'seq 1 50; exit 3'] }, /command sh ended with 3/],
    ['is killed', { command: ['sh', '-c', 'echo a; kill -9 $$'] }, /command sh was ended by SIGKILL/],
    ['is not there', { command: ['expunge-no-such-program'] }, /cannot be started: there is no such program/],
    ['takes too long', { command: ['sh', '-c', 'echo a; sleep 60'], timeout: '300ms' }, /took longer than 0.3 s/],
    ['prints what is no list', { command: ['printf', 'id\\na\\n'] }, /the first row holds "id"/],
    ['prints what are mostly no ids', { command: ['seq', '-f', 'a/%g', '20'] }, /20 of 20 rows are rejected as unsafe/],
    ['matches no file', { glob: '/nowhere/*.csv' }, /no file is there/],
    ['leads to nobody', { url: 'http://127.0.0.1:9/list.txt' }, /gave no complete list \(/],
    [
      'is unencrypted',
      { url: 'http://lists.example.com/list.txt' },
      /over http an attacker in the network could change the list/,
    ],
  ])('%s', async ([, source, words], { expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    await stage.at(one, { sources: readSources({ expired: source }) });
    expect(await stage.runs()).toEqual([]);
    expect(await stage.history()).toMatchObject([
      { slot: one, outcome: 'failed', reason: expect.stringMatching(words) },
    ]);
    stage.list(someIds('v', 5));
    await stage.at(two);
    expect(await stage.runs()).toHaveLength(1);
  });

  test('is empty and may be', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add({ allowEmpty: true });
    stage.list([]);
    await stage.at(one);
    expect(await stage.history()).toMatchObject([{ outcome: 'empty', reason: 'the list is empty' }]);
    expect((await stage.schedule()).state).toBe('active');
  });
});
