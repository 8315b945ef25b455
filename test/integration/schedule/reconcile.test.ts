import { describe, test } from 'vitest';
import { readSources } from '../../../src/config/list-source.ts';
import { readSuccesses } from '../../../src/ledger/end-run.ts';
import { readEvents } from '../../../src/ledger/outbox.ts';
import type { OutcomeCounts } from '../../../src/model/outcome.ts';
import { keys } from '../../../src/redis/keys.ts';
import { leaseSchedule } from '../../../src/schedule/lease.ts';
import { reconcile } from '../../../src/schedule/reconcile.ts';
import { type Definition, type HistoryEntry, toOccurrenceResult } from '../../../src/schedule/schedule.ts';
import { readAudit, steerSchedule, updateSchedule } from '../../../src/schedule/schedule-store.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

const [one, two, three] = [start + minute, start + 2 * minute, start + 3 * minute];

/** The schedule has had some lists of ten rows, and all of their runs have ended. */
async function usual(harness: ScheduleHarness, occurrences: number): Promise<void> {
  for (let n = 1; n <= occurrences; n++) {
    harness.list(someIds(`usual-${n}`, 10));
    await harness.at(start + n * minute);
    await harness.finish((await harness.schedule()).lastRun);
  }
  await harness.at(harness.now + 1_000);
}

/** Makes the run of an occurrence, ends it with these counts, records that, and returns the run. */
async function endOccurrence(
  harness: ScheduleHarness,
  occurrence: number,
  counts: Partial<OutcomeCounts>,
): Promise<string> {
  await harness.at(occurrence);
  const { lastRun } = await harness.schedule();
  await harness.finish(lastRun, counts);
  await harness.at(occurrence + 1_000);
  return lastRun;
}

describe.concurrent('an occurrence', () => {
  test('becomes a detached run that its workers may take', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 20));
    await harness.at(one - 1);
    expect(await harness.runs()).toEqual([]);
    await harness.at(one);
    const [run] = await harness.runs();
    expect(run).toMatchObject({ state: 'running', detached: true, rows: 20, note: 'OPS-1' });
    expect(run!.createdBy).toBe('schedule nightly on worker@test');
    expect(await harness.redis.sismember(keys.targetRuns(harness.target.fp), run!.id)).toBe(1);
    expect(await harness.history()).toMatchObject([{ occurrence: one, outcome: 'started', run: run!.id, rows: 20 }]);
  });

  test('has one run, however often it is checked, and wherever', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 20));
    harness.now = one;
    const ring = () => reconcile(harness.work, 'nightly', new AbortController().signal);
    await Promise.all(Array.from({ length: 8 }, ring));
    await Promise.all(Array.from({ length: 8 }, ring));
    expect(await harness.runs()).toHaveLength(1);
    expect(await harness.history()).toHaveLength(1);
  });

  test('has one run where two workers define its source differently', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 20));
    const other = readSources({ expired: { command: ['seq', '-f', 'other-%g', '30'] } });
    await Promise.all([harness.at(one), harness.at(one, { sources: other, who: 'other@test' })]);
    await harness.at(one, { sources: other, who: 'other@test' });
    expect(await harness.runs()).toHaveLength(1);
  });

  /** @invariant one-run-per-occurrence: An occurrence has one run. */
  test('has one run also where two processes both believe to hold the lease of the schedule', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    const { redis, target } = harness;
    const first = (await leaseSchedule(redis, target.fp, 'nightly', new AbortController().signal))!;
    await redis.del(keys.scheduleLease(target.fp, 'nightly')); // as if it had hung for 15 s
    const second = (await leaseSchedule(redis, target.fp, 'nightly', new AbortController().signal))!;
    const claim = (run: string) => ({ claim: { occurrence: one, run, carriedOver: null }, fields: { lastRun: run } });
    expect(await updateSchedule(redis, first, claim('run-1'))).toBe('lost');
    expect(await updateSchedule(redis, second, claim('run-2'))).toBe('done');
    expect(await updateSchedule(redis, second, claim('run-3'))).toBe('taken');
    expect((await harness.schedule()).lastRun).toBe('run-2');
    await Promise.all([first.release(), second.release()]);
  });

  test('is none of a worker that does not have its source', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add({ from: 'elsewhere' });
    await harness.at(one);
    expect([await harness.runs(), await harness.history()]).toEqual([[], []]);
  });

  test('has a run after all if the first process died while it made one', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    const stop = new AbortController();
    const sources = readSources({ expired: { command: ['sleep', '60'] } });
    harness.now = one;
    const dying = reconcile({ ...harness.work, sources }, 'nightly', stop.signal);
    await expect.poll(async () => (await harness.schedule()).waiting).toBe(one);
    stop.abort();
    await dying;
    expect(await harness.history()).toEqual([]);
    harness.list(someIds('v', 5));
    await harness.at(one + 5_000);
    expect(await harness.history()).toMatchObject([{ occurrence: one, outcome: 'started' }]);
  });

  test('has one run if the first process died between writing it and starting it', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    await harness.at(one);
    const [run] = await harness.runs();
    // Written, not the run of the occurrence yet: nobody would ever start it.
    await harness.redis.hset(keys.run(run!.id), 'state', 'planned');
    await harness.redis.hset(keys.schedule(harness.target.fp, 'nightly'), {
      preparing: run!.id,
      lastRun: '',
      waiting: one,
    });
    await harness.redis.del(keys.scheduleOccurrence(harness.target.fp, 'nightly', one));
    harness.list(someIds('w', 6));
    await harness.at(one + 5_000);
    expect((await harness.runs()).map(({ rows, state }) => [rows, state])).toEqual([[6, 'running']]);
    // The run of the occurrence, not started yet.
    const { lastRun } = await harness.schedule();
    await harness.redis.hset(keys.run(lastRun), 'state', 'planned');
    await harness.at(one + 6_000);
    expect((await harness.runs()).map(({ id, state }) => [id, state])).toEqual([[lastRun, 'running']]);
  });

  test('leaves a run of the same list to the operator who has written it since a process died making it', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    await harness.at(one);
    const { lastRun } = await harness.schedule();
    await harness.redis.hset(keys.run(lastRun), { state: 'planned', createdBy: 'ana@test' });
    await harness.redis.hset(keys.schedule(harness.target.fp, 'nightly'), {
      preparing: lastRun,
      lastRun: '',
      lastSha256: '',
    });
    await harness.at(two);
    expect((await harness.runs()).map(({ id, state }) => [id, state])).toEqual([[lastRun, 'planned']]);
  });

  test('has no run while the same list is under way by hand', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    await harness.at(one);
    const { lastRun } = await harness.schedule();
    await harness.redis.hset(keys.schedule(harness.target.fp, 'nightly'), { lastRun: '', lastSha256: '' });
    await harness.at(two);
    const [entry] = await harness.history();
    expect(entry).toMatchObject({ outcome: 'skipped', reason: `run ${lastRun} is deleting the same list` });
    expect(await harness.runs()).toHaveLength(1);
  });
});

describe.concurrent('while the last run has not ended, an occurrence', () => {
  test('is skipped', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('a', 5));
    await harness.at(one);
    harness.list(someIds('b', 5));
    await harness.at(two);
    await harness.at(three);
    const { lastRun } = await harness.schedule();
    const reason = `run ${lastRun} has not ended`;
    expect(await harness.runs()).toHaveLength(1);
    expect(await harness.history()).toMatchObject([
      { occurrence: three, occurrences: 2, outcome: 'skipped', reason },
      { run: lastRun },
    ]);
    await harness.finish(lastRun);
    await harness.at(three + minute);
    expect(await harness.runs()).toHaveLength(2);
    expect((await harness.history()).at(-1)!.ended).toMatchObject({ state: 'completed' });
    expect(await readSuccesses(harness.redis, harness.target.fp)).toEqual({ nightly: three });
  });
});

describe.concurrent('occurrences that nobody saw to in time', () => {
  test('are missed by "none"', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    await harness.at(three + 45_000);
    expect(await harness.runs()).toEqual([]);
    expect(await harness.history()).toMatchObject([
      { outcome: 'missed', occurrences: 3, occurrence: three, reason: 'seen 45 s late' },
    ]);
    await harness.at(three + minute);
    expect(await harness.runs()).toHaveLength(1);
  });

  test('have one run by "latest", not one each', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add({ missed: 'latest' });
    harness.list(someIds('v', 5));
    await harness.at(three + 45_000);
    await harness.at(three + 46_000);
    expect(await harness.runs()).toHaveLength(1);
    expect(await harness.history()).toMatchObject([
      { outcome: 'started', occurrence: three },
      { outcome: 'missed', occurrences: 2, occurrence: three - minute },
    ]);
  });

  test('are none while it was paused', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add({ missed: 'latest' });
    harness.list(someIds('v', 5));
    const author = (at: number) => ({ at, by: 'operator', who: 'ana@test', reason: 'audit' }) as const;
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'pause', author(start));
    await harness.at(three);
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'resume', author(three + 1_000));
    await harness.at(three + 2_000);
    expect(await harness.runs()).toEqual([]);
    await harness.at(three + minute);
    expect(await harness.runs()).toHaveLength(1);
  });
});

describe.concurrent('a schedule is paused, and says why, by', () => {
  test.for<[string, (harness: ScheduleHarness) => Promise<unknown>, string, RegExp]>([
    [
      'a list over --max-deletes',
      async (harness) => harness.list(someIds('x', 101)),
      'too_many',
      /holds 101 ids, --max-deletes allows 100/,
    ],
    ['an empty list', async (harness) => harness.list([]), 'empty', /the list is empty: 0 rows/],
    ['the list of last time', async () => {}, 'same', /the same as last time, in run /],
    [
      'a list that has grown',
      async (harness) => harness.list(someIds('x', 31)),
      'growth',
      /31 rows, more than 3 × the usual 10/,
    ],
  ])('%s', async ([, prepare, guard, words], { expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    await usual(harness, 3);
    await prepare(harness);
    await harness.at(start + 4 * minute);
    expect(await harness.runs()).toHaveLength(3);
    expect(await harness.schedule()).toMatchObject({
      state: 'paused',
      reason: expect.stringMatching(words),
      pausedBy: guard,
    });
    expect(await harness.history()).toMatchObject([{ outcome: 'refused' }, {}, {}, {}]);
    const [entry] = await readAudit(harness.redis, harness.target.fp, 'nightly');
    expect(entry).toMatchObject({
      action: 'pause',
      by: 'guard',
      guard,
      who: '',
      reason: expect.stringMatching(words),
    });
    await harness.at(start + 5 * minute);
    expect(await harness.runs()).toHaveLength(3);
  });

  test.for(['before', 'after'] as const)(
    'a list that a guard refuses, told once, also where the process dies %s it has recorded that',
    async (when, { expect, onTestFinished }) => {
      const harness = await openScheduleHarness(onTestFinished);
      await harness.add();
      harness.list([]);
      const { redis, target, work } = harness;
      let isDead = false;
      const call = async (...args: Parameters<typeof redis.eval>) => {
        const isRefusal = args.some((arg) => String(arg).includes('"outcome":"refused"'));
        const answer = isDead || (isRefusal && when === 'before') ? null : await redis.eval(...args);
        isDead ||= isRefusal;
        if (isDead && answer === null) throw new Error('killed');
        return answer;
      };
      const dying = new Proxy(redis, {
        get: (of, name) => {
          const found = Reflect.get(of, name);
          if (name === 'eval') return call;
          return typeof found === 'function' ? found.bind(of) : found;
        },
      });
      await harness.at(one, { ledger: { ...work.ledger, redis: dying } }).catch(() => {});
      expect(isDead).toBe(true);
      await redis.del(keys.scheduleLease(target.fp, 'nightly')); // as it is 15 s later
      await harness.at(one + 15_000);
      expect(await harness.schedule()).toMatchObject({ state: 'paused', pausedBy: 'empty', who: '', waiting: null });
      expect(await harness.history()).toMatchObject([{ occurrence: one, occurrences: 1, outcome: 'refused' }]);
      const events = await readEvents(redis, target.fp, 0, 10);
      expect(events.map(({ event }) => event.type)).toEqual(['schedule.refused', 'schedule.paused']);
      expect(await readAudit(redis, target.fp, 'nightly')).toMatchObject([
        { action: 'pause', by: 'guard', guard: 'empty' },
        { action: 'add' },
      ]);
    },
  );

  test('a run that was halted', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    await harness.at(one);
    const { lastRun } = await harness.schedule();
    const halt = { action: 'halt', reason: 'all answered 403', by: 'guard', who: '', halt: 'forbidden' } as const;
    await harness.work.ledger.steer(lastRun, harness.now, halt);
    await harness.at(one + 1_000);
    expect(await harness.schedule()).toMatchObject({
      state: 'paused',
      reason: `its run ${lastRun} is halted: all answered 403`,
      pausedBy: 'halted',
      who: '',
    });
  });

  test('a run that found none of its ids, which is reported once', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add({ heartbeat: 'http://monitor.invalid/beat' });
    harness.list(someIds('v', 5));
    const { redis, target } = harness;
    const lastRun = await endOccurrence(harness, one, { absent: 5 });
    const paused = await harness.schedule();
    expect(paused).toMatchObject({ state: 'paused', pausedBy: 'none_there', who: '', heartbeatDue: null });
    expect(paused.reason).toMatch(
      `its run ${lastRun} is completed, but nothing shows that any of its ids was there: check its list, `,
    );
    expect(paused.reason).toMatch(/--expect-absent$/);
    const [{ ended, ...entry }] = (await harness.history()) as [HistoryEntry];
    expect(ended).toEqual({ state: 'completed', conclusion: 'none_there', deleted: 0, gone: 5, left: 0 });
    expect(toOccurrenceResult({ ...entry, ended })).toBe('incomplete');
    expect(await readSuccesses(redis, target.fp)).toEqual({});
    await harness.at(two);
    await harness.at(three);
    expect(await harness.runs()).toHaveLength(1);
    const events = await readEvents(redis, target.fp, 0, 10);
    expect(events.map(({ event }) => event.type)).toEqual(['schedule.paused']);
  });

  test('a run that found none of its ids, also where the process dies before it has recorded that', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    await harness.at(one);
    const { lastRun } = await harness.schedule();
    await harness.finish(lastRun, { absent: 5 });
    const { redis, target, work } = harness;
    const eval_ = async (...args: Parameters<typeof redis.eval>) => {
      if (args.includes('lastConclusion')) throw new Error('killed');
      return redis.eval(...args);
    };
    const dying = new Proxy(redis, {
      get: (of, name) => {
        const found = name === 'eval' ? eval_ : Reflect.get(of, name);
        return typeof found === 'function' ? found.bind(of) : found;
      },
    });
    await expect(harness.at(one + 1_000, { ledger: { ...work.ledger, redis: dying } })).rejects.toThrow('killed');
    expect(await harness.schedule()).toMatchObject({ state: 'paused', lastState: '' });
    await redis.del(keys.scheduleLease(target.fp, 'nightly')); // as it is 15 s later
    await harness.at(one + 15_000);
    expect(await harness.schedule()).toMatchObject({ state: 'paused', lastConclusion: 'none_there' });
    expect(await readEvents(redis, target.fp, 0, 10)).toHaveLength(1);
  });

  test.for<[string, Partial<Definition>, Partial<OutcomeCounts>]>([
    ['found one of its ids', {}, { absent: 4, deleted: 1 }],
    ['was to expect that', { settings: { resource: 'views', maxDeletes: '100', expectAbsent: 'true' } }, { absent: 5 }],
    ['may have deleted them, but for a crash', {}, { gone_unconfirmed: 5 }],
  ])('no run that %s', async ([, definition, counts], { expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add({ ...definition, heartbeat: 'http://monitor.invalid/beat' });
    harness.list(someIds('v', 5));
    await endOccurrence(harness, one, counts);
    const schedule = await harness.schedule();
    expect(schedule).toMatchObject({ state: 'active', lastConclusion: 'well', heartbeatDue: one + 1_000 });
    expect((await harness.history()).map(toOccurrenceResult)).toEqual(['completed']);
    expect(await readSuccesses(harness.redis, harness.target.fp)).toEqual({ nightly: one });
  });

  test('nobody who resumed it after a run that found none of its ids: the same list has its try again', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    await endOccurrence(harness, one, { absent: 5 });
    const author = { at: harness.now, by: 'operator', who: 'ana@test', reason: 'the API was down' } as const;
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'resume', author);
    await endOccurrence(harness, two, { deleted: 5 });
    expect(await harness.schedule()).toMatchObject({ state: 'active', lastConclusion: 'well' });
    expect(await harness.runs()).toHaveLength(2);
    await harness.at(three); // that run did something: now the same list is refused
    expect(await harness.schedule()).toMatchObject({ state: 'paused', pausedBy: 'same' });
  });

  test('nobody who resumed it: then the next list passes that guard, once', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    await usual(harness, 3);
    harness.list(someIds('x', 31));
    await harness.at(start + 4 * minute);
    const author = { at: harness.now, by: 'operator', who: 'ana@test', reason: 'the list is right' } as const;
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'resume', author);
    await harness.at(start + 5 * minute);
    expect(await harness.runs()).toHaveLength(4);
    await harness.finish((await harness.schedule()).lastRun);
    harness.list(someIds('y', 32));
    await harness.at(start + 6 * minute);
    expect(await harness.schedule()).toMatchObject({ state: 'paused', pausedBy: 'growth' });
    expect(await harness.runs()).toHaveLength(4);
  });
});

describe.concurrent('no run was made for an occurrence, and the next one has its try, if the source', () => {
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
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    await harness.at(one, { sources: readSources({ expired: source }) });
    expect(await harness.runs()).toEqual([]);
    expect(await harness.history()).toMatchObject([
      { occurrence: one, outcome: 'failed', reason: expect.stringMatching(words) },
    ]);
    harness.list(someIds('v', 5));
    await harness.at(two);
    expect(await harness.runs()).toHaveLength(1);
  });

  test('is empty and may be', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add({ settings: { resource: 'views', maxDeletes: '100', allowEmpty: 'true' } });
    harness.list([]);
    await harness.at(one);
    expect(await harness.history()).toMatchObject([{ outcome: 'empty', reason: 'the list is empty' }]);
    expect((await harness.schedule()).state).toBe('active');
  });
});
