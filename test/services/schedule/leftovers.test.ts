import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { readSources } from '../../../src/config/list-source.ts';
import { unlinkRun } from '../../../src/ledger/end-run.ts';
import { isFinalized, type Run, readRun } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import type { FaultKind } from '../../../src/sandbox/fault-kinds.ts';
import { dryRun, runNow } from '../../../src/schedule/follow-run.ts';
import { reconcile } from '../../../src/schedule/reconcile.ts';
import type { Definition } from '../../../src/schedule/schedule.ts';
import { steerSchedule } from '../../../src/schedule/schedule-store.ts';
import { summaryIn } from '../../support/command.ts';
import type { AtEnd } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

type Stage = ScheduleHarness & {
  /** Makes the run of the nth occurrence, waits until its worker has deleted it, and records its end. */
  occurrence(n: number): Promise<Run>;
  /** Ends the worker: runs are made and not deleted. */
  rest(): Promise<void>;
  /** The ids that were sent since the last call, sorted. */
  sent(): string[];
};

const settings: Definition['settings'] = { resource: 'views', maxDeletes: '100', onStatus: '409=failed' };

/** A schedule with a worker that deletes its runs at the sandbox, where an id is there once. */
async function openStage(atEnd: AtEnd, definition: Partial<Definition>): Promise<Stage> {
  const script = (_: string, id: string, nth: number) =>
    id.startsWith('u') && nth > 1 ? null : (faults[id[0]!] ?? null);
  const harness = await openScheduleHarness(atEnd, { objects, faults: { script } });
  await harness.add({ settings, ...definition });
  const worker = await harness.worker();
  const rest = async () => {
    worker.signal('SIGTERM');
    await worker.ended;
  };
  let told = 0;
  const occurrence = async (n: number) => {
    await harness.at(start + n * minute);
    const { lastRun } = await harness.schedule();
    const run = await until(`occurrence ${n} has ended`, async () => {
      const found = await readRun(harness.redis, lastRun);
      return found !== null && isFinalized(found.state) ? found : null;
    });
    await harness.at(start + n * minute + 1_000);
    return run;
  };
  const sent = () => {
    const { seen } = harness.sandbox;
    const news = seen.slice(told);
    told = seen.length;
    return news.map((line) => line.split('/').at(-1)!).sort();
  };
  return Object.assign(harness, { occurrence, rest, sent });
}

const ten = someIds('v', 10);
const others = [...'wcu'].flatMap((word) => someIds(word, 5));
const objects = [...ten, ...others, ...someIds('new', 5)].map((id) => ({ resource: 'views' as const, id }));
const authorAt = (at: number) => ({ at, by: 'operator', who: 'ana@test', reason: '' }) as const;

describe.concurrent('with --at-most', () => {
  /** @invariant sent-once-when-carried: An id that `--at-most` carries over is sent once. */
  test('an occurrence deletes that many ids, the next ones the rest, and each id is sent once', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 4 });
    stage.list(ten);
    expect(await stage.occurrence(1)).toMatchObject({ state: 'completed', rows: 4, ids: 4 });
    expect(stage.sent()).toEqual(ten.slice(0, 4));
    expect((await stage.history())[0]).toMatchObject({
      carriedOver: 6,
      retried: 0,
      rows: 4,
      ended: { deleted: 4, left: 0 },
    });
    stage.list(someIds('w', 1)); // the file was replaced: nobody else knows the other ids
    await stage.occurrence(2);
    expect(stage.sent()).toEqual(ten.slice(4, 8));
    expect((await stage.schedule()).carriedOver).toMatchObject({ ids: 3 });
    await stage.occurrence(3); // the same list again: it was taken over already
    expect(stage.sent()).toEqual([...ten.slice(8), 'w-0']);
    expect((await stage.history())[0]).toMatchObject({ carriedOver: 0, ended: { deleted: 3, left: 0 } });
    expect(await stage.redis.exists(keys.scheduleCarriedOver(stage.target.fp, 'nightly'))).toBe(0);
    await stage.at(start + 4 * minute);
    expect(await stage.schedule()).toMatchObject({ state: 'paused', pausedBy: 'same' });
  });

  test('a source that still lists the carried-over ids has none of them sent twice, nor grows what is carried over', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 3 });
    const gone = new Set<string>();
    for (let n = 1; n <= 4; n++) {
      stage.list([...ten.filter((id) => !gone.has(id)), `new-${n}`]);
      await stage.occurrence(n);
      for (const id of stage.sent()) {
        expect(gone.has(id)).toBe(false);
        gone.add(id);
      }
      expect(gone.size).toBe(3 * n);
      expect((await stage.schedule()).carriedOver).toMatchObject({ ids: 10 + n - 3 * n });
    }
  });

  test('the rejected, duplicate and protected rows of a list are in the report of its first run', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    const protect = harness.file('kept.txt', 'v-9\n');
    await harness.add({ settings: { ...settings, protect }, atMost: 2 });
    harness.list(['v-0', 'v-0', 'v-1', 'v-2', 'v-2', 'v-1', '..', 'v-9']);
    await harness.at(start + minute);
    const [run] = await harness.runs();
    // The second v-2 repeats a carried-over id, and is that id.
    expect(run).toMatchObject({ ids: 2, rows: 6, counts: { rejected: 1, duplicate: 2, protected: 1 } });
    expect((await harness.schedule()).carriedOver).toMatchObject({ ids: 1 });
  });

  test('a carried-over id that has come under protection is not deleted', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, {});
    const protect = stage.file('kept.txt', 'other\n');
    await stage.add({ settings: { ...settings, protect, expectUnprotected: 'true' }, atMost: 8 });
    stage.list(ten);
    await stage.occurrence(1);
    stage.sent();
    stage.file('kept.txt', 'other\nv-9\n');
    stage.list(['w-0']);
    const run = await stage.occurrence(2);
    expect(stage.sent()).toEqual(['v-8', 'w-0']);
    expect(run.counts).toMatchObject({ deleted: 2, protected: 1 });
  });
});

function signal() {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

/**
 * A process that makes the run of an occurrence and hangs: before it writes the record of the run, before Redis has its claim of the occurrence,
 * before it has the answer, or without one, and asks again.
 */
function hangingAtClaim(
  { work }: ScheduleHarness,
  when: 'before writing' | 'before' | 'after' | 'without an answer to',
) {
  const [reached, woken] = [signal(), signal()];
  const { redis } = work.ledger;
  const claimRun = 2 + 9 + 2; // of the arguments: script, number of keys, keys, token, '1' if active, run
  const call = async (...args: Parameters<typeof redis.eval>) => {
    const isClaim = String(args[0]).includes("'RENAME'") && args[claimRun] !== '';
    const isRecord = args.includes('createdAt');
    if (!(when === 'before writing' ? isRecord : isClaim)) return redis.eval(...args);
    const answer = when === 'after' || when === 'without an answer to' ? await redis.eval(...args) : null;
    const early = when === 'after' ? answer : null;
    reached.give();
    await woken.given;
    return early ?? redis.eval(...args);
  };
  const hanging = new Proxy(redis, {
    get: (of, name) => {
      const found = Reflect.get(of, name);
      if (name === 'eval') return call;
      return typeof found === 'function' ? found.bind(of) : found;
    },
  });
  const ledger = { ...work.ledger, redis: hanging };
  return { work: { ledger }, reached: reached.given, wake: woken.give };
}

describe.concurrent('what a schedule carries over', () => {
  test.for(['before writing', 'before', 'after', 'without an answer to'] as const)(
    'is deleted once where a process hangs %s its claim of an occurrence, and another one takes over',
    async (when, { expect, onTestFinished }) => {
      const stage = await openStage(onTestFinished, { atMost: 4 });
      stage.list(ten);
      await stage.occurrence(1);
      stage.list(['w-0', 'w-1', 'w-2']);
      const hanging = hangingAtClaim(stage, when);
      const asleep = stage.at(start + 2 * minute, hanging.work);
      await hanging.reached;
      await stage.redis.del(keys.scheduleLease(stage.target.fp, 'nightly')); // as it is 15 s later
      await stage.occurrence(2);
      hanging.wake();
      await asleep;
      await stage.occurrence(3);
      await stage.occurrence(4);
      expect(stage.sent()).toEqual([...ten, 'w-0', 'w-1', 'w-2']);
      const history = (await stage.history()).toReversed();
      expect(history.map(({ rows, carriedOver, ended }) => [rows, carriedOver, ended?.deleted])).toEqual([
        [4, 6, 4],
        [4, 5, 4],
        [4, 1, 4],
        [1, 0, 1],
      ]);
      expect(await stage.runs()).toHaveLength(4);
    },
  );

  test('is deleted once where a process wakes before it wrote the run that another one is writing', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 4 });
    stage.list(ten);
    const first = hangingAtClaim(stage, 'before writing');
    const asleep = stage.at(start + minute, first.work);
    await first.reached;
    await stage.redis.del(keys.scheduleLease(stage.target.fp, 'nightly')); // as it is 15 s later
    const second = hangingAtClaim(stage, 'before');
    const writing = stage.at(start + minute, second.work);
    await second.reached;
    first.wake();
    await asleep;
    second.wake();
    await writing;
    for (const n of [1, 2, 3]) await stage.occurrence(n);
    expect(stage.sent()).toEqual(ten);
    expect(await stage.runs()).toHaveLength(3);
  });

  test('is deleted once where a process wakes, and has lost its lease, while another one reads the list', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 4 });
    stage.list(ten);
    const hanging = hangingAtClaim(stage, 'before writing');
    const lost = new AbortController();
    stage.now = start + minute;
    const asleep = reconcile({ ...stage.work, ...hanging.work }, 'nightly', lost.signal);
    await hanging.reached;
    await stage.redis.del(keys.scheduleLease(stage.target.fp, 'nightly')); // as it is 15 s later
    const [begun, gate] = [join(stage.folder, 'begun'), join(stage.folder, 'gate')];
    const script = `touch ${begun}; until [ -e ${gate} ]; do sleep 0.05; done; cat ${join(stage.folder, 'list')}`;
    const reading = stage.at(stage.now, { sources: readSources({ expired: { command: ['sh', '-c', script] } }) });
    await until('the list is being read', async () => existsSync(begun));
    lost.abort();
    hanging.wake();
    await asleep;
    writeFileSync(gate, '');
    await reading;
    for (const n of [2, 3, 4]) await stage.occurrence(n);
    expect(stage.sent()).toEqual(ten);
    expect((await stage.runs()).map(({ state, ids }) => [state, ids])).toEqual([
      ['completed', 4],
      ['completed', 4],
      ['completed', 2],
    ]);
  });

  test('is deleted once where Redis is asked again for a claim whose answer got lost', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 4 });
    stage.list(ten);
    const hanging = hangingAtClaim(stage, 'without an answer to');
    hanging.wake();
    await stage.at(start + minute, hanging.work);
    for (const n of [1, 2, 3]) await stage.occurrence(n);
    expect(stage.sent()).toEqual(ten);
    expect(await stage.runs()).toHaveLength(3);
  });

  test('is deleted also where the source has nothing more, since its files were put away', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 6 });
    const [folder, archive] = [join(stage.folder, 'in'), join(stage.folder, 'done')];
    mkdirSync(folder);
    writeFileSync(join(folder, 'a.txt'), `${ten.join('\n')}\n`);
    stage.work.sources = readSources({ expired: { glob: join(folder, '*.txt'), archive, settle: '0s' } });
    await stage.occurrence(1);
    expect(readdirSync(folder)).toEqual([]);
    await stage.occurrence(2);
    expect(stage.sent()).toEqual(ten);
    await stage.at(start + 3 * minute);
    expect((await stage.history())[0]).toMatchObject({ outcome: 'empty' });
  });

  test('stays through an occurrence without a run, and a change of the schedule', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 6 });
    stage.list(ten);
    await stage.occurrence(1);
    stage.list([]);
    await stage.at(start + 2 * minute);
    expect(await stage.schedule()).toMatchObject({ state: 'paused', pausedBy: 'empty', carriedOver: { ids: 4 } });
    stage.list(['w-0']);
    await stage.add({ settings, atMost: 0 });
    await steerSchedule(stage.redis, stage.target.fp, 'nightly', 'resume', authorAt(stage.now));
    await stage.occurrence(3);
    expect(stage.sent()).toEqual([...ten, 'w-0']);
  });

  test('is dropped with its schedule, and is not there for one of that name', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { atMost: 6, retryFailed: true });
    stage.list(ten);
    await stage.occurrence(1);
    stage.sent();
    const { redis, target } = stage;
    await steerSchedule(redis, target.fp, 'nightly', 'remove', authorAt(stage.now));
    expect(await redis.pttl(keys.scheduleCarriedOver(target.fp, 'nightly'))).toBeGreaterThan(0);
    await stage.add({ settings, atMost: 6, retryFailed: true });
    stage.list(['w-0']);
    await stage.occurrence(2);
    expect(stage.sent()).toEqual(['w-0']);
  });

  test('is told missing where Redis has lost it, and nothing is deleted', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { atMost: 6 });
    stage.list(ten);
    const { id } = await stage.occurrence(1);
    await stage.redis.del(keys.scheduleCarriedOver(stage.target.fp, 'nightly'));
    await stage.at(start + 2 * minute);
    const reason = `Redis has lost ids that run ${id} left to the next occurrence: expected 4, got 0`;
    expect((await stage.history())[0]).toMatchObject({ outcome: 'failed', reason });
    expect(await stage.runs()).toHaveLength(1);
  });

  test('is told as it is then where an occurrence takes it over while a dry run reads it', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 4 });
    stage.list(ten);
    await stage.occurrence(1);
    stage.list(['w-0']);
    const { redis } = stage.work.ledger;
    let claims = 0;
    const meeting = new Proxy(redis, {
      get: (of, name) => {
        const found = Reflect.get(of, name);
        if (typeof found !== 'function') return found;
        if (name !== 'hmgetBuffer') return found.bind(of);
        return async (...args: unknown[]) => {
          if (claims++ === 0) await stage.occurrence(2);
          return found.apply(of, args);
        };
      },
    });
    const deps = { ...stage.work, ledger: { ...stage.work.ledger, redis: meeting } };
    const told = await dryRun(deps, 'nightly', new AbortController().signal);
    expect(told).toMatchObject({ list: { left: 3, sends: 3 }, carriedOver: 0, refusal: null });
  });

  test('is not told missing where Redis has forgotten a run that completed', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { atMost: 4 });
    stage.list(['v-0', 'c-0']);
    await unlinkRun(stage.redis, await stage.occurrence(1));
    stage.list(['v-1']);
    await stage.occurrence(2);
    expect((await stage.history())[0]).toMatchObject({ outcome: 'started', reason: '' });
  });
});

test('a run that is being written while its schedule is changed is removed', async ({ expect, onTestFinished }) => {
  const stage = await openScheduleHarness(onTestFinished);
  await stage.add();
  stage.list(ten);
  const change = () => stage.add({ settings: { ...settings, maxDeletes: '50' } });
  await stage.at(start + minute, { onRun: change });
  expect(await stage.runs()).toEqual([]);
});

test('a run that is being made by hand while its schedule is removed is removed, and nothing that it was to carry over is kept', async ({
  expect,
  onTestFinished,
}) => {
  const stage = await openScheduleHarness(onTestFinished);
  const { redis, target } = stage;
  await stage.add({ atMost: 4 });
  stage.list(ten);
  let run = '';
  const onRun = async (id: string) => {
    run = id;
    await steerSchedule(redis, target.fp, 'nightly', 'remove', authorAt(stage.now));
  };
  const result = await runNow({ ...stage.work, onRun }, 'nightly', new AbortController().signal);
  expect(result).toEqual({ outcome: 'void' });
  expect(await stage.runs()).toEqual([]);
  expect(await stage.schedule()).toMatchObject({ state: 'removed', lastRun: '' });
  const carriedOver = [
    keys.scheduleCarriedOver(target.fp, 'nightly'),
    keys.scheduleCarriedOverNext(target.fp, 'nightly', run),
  ];
  expect(await Promise.all(carriedOver.map((key) => redis.pttl(key)))).not.toContain(-1); // kept for ever
});

test('a run that an operator has started or taken over, before the process that wrote it is told of a pause, stays', async ({
  expect,
  onTestFinished,
}) => {
  for (const takes of ['starts it', 'takes it over'] as const) {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add();
    stage.list(ten);
    const hanging = hangingAtClaim(stage, 'before');
    const asleep = stage.at(start + minute, hanging.work);
    await hanging.reached;
    await steerSchedule(stage.redis, stage.target.fp, 'nightly', 'pause', authorAt(stage.now));
    const { preparing } = await stage.schedule();
    if (takes === 'takes it over') await stage.redis.hset(keys.run(preparing), 'createdBy', 'ana@test');
    else await stage.work.ledger.steer(preparing, stage.now, { action: 'start', ...authorAt(stage.now) });
    const parts = [keys.manifest(preparing, 0), keys.ledger(preparing, 0)];
    hanging.wake();
    await asleep;
    const [run] = await stage.runs();
    expect(run).toMatchObject({ id: preparing, state: takes === 'starts it' ? 'running' : 'planned' });
    expect(await stage.redis.exists(...parts)).toBe(2);
    expect(await stage.redis.get(keys.list(run!.list))).toBe(preparing);
  }
});

test('a run that was halted or paused, while the process that made it hung, stays so', async ({
  expect,
  onTestFinished,
}) => {
  for (const action of ['halt', 'pause'] as const) {
    const stage = await openStage(onTestFinished, {});
    await stage.rest();
    stage.list(ten);
    const hanging = hangingAtClaim(stage, 'after');
    const asleep = stage.at(start + minute, hanging.work);
    await hanging.reached;
    await stage.redis.del(keys.scheduleLease(stage.target.fp, 'nightly')); // as it is 15 s later
    await stage.at(start + minute + 1_000); // another one starts the run
    const { lastRun } = await stage.schedule();
    const steering = { action, reason: 'too many of them fail', by: 'guard', who: '' } as const;
    const { after: state } = await stage.work.ledger.steer(lastRun, stage.now, steering);
    hanging.wake();
    await asleep;
    expect((await readRun(stage.redis, lastRun))!.state).toBe(state);
  }
});

const faults: Record<string, FaultKind> = { c: 'status-409', u: 'status-200-executed' };

describe.concurrent('with --retry-failed', () => {
  test('an occurrence sends again what the last one left as failed or unknown, until it is gone, and says so', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'v-1', 'c-0', 'u-0', 'v-2']);
    const first = await stage.occurrence(1);
    expect(first.counts).toMatchObject({ deleted: 3, failed: 1, unknown: 1 });
    stage.sent();
    stage.list(['v-3', 'v-4', 'v-5']);
    const second = await stage.occurrence(2);
    expect(stage.sent()).toEqual(['c-0', 'u-0', 'v-3', 'v-4', 'v-5']);
    expect(second).toMatchObject({
      retryOf: first.id,
      expectAbsent: false,
      counts: { absent: 1, failed: 1, deleted: 3 },
    });
    expect((await readRun(stage.redis, first.id))!.retriedBy).toEqual([second.id]);
    expect((await stage.expunge(['runs'])).stdout).toContain(`and ids of ${first.id}`);
    expect((await stage.history())[0]).toMatchObject({ retried: 2, ended: { left: 1 } });
    stage.sandbox.faults = {};
    stage.list(['v-6']);
    await stage.occurrence(3);
    expect(stage.sent()).toEqual(['c-0', 'v-6']);
    expect((await stage.history())[0]).toMatchObject({ retried: 1, ended: { left: 0 } });
    stage.list(['v-7']);
    expect(await stage.occurrence(4)).toMatchObject({ retryOf: '' });
    expect(stage.sent()).toEqual(['v-7']);
  });

  test('an occurrence that only retries ids which somebody has deleted meanwhile pauses nothing, and calls no heartbeat', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'c-0']);
    await stage.occurrence(1);
    stage.sandbox.faults = { script: () => 'status-404' };
    await stage.occurrence(2);
    expect((await stage.history())[0]).toMatchObject({ retried: 1, ended: { conclusion: 'none_there', gone: 0 } });
    expect(await stage.schedule()).toMatchObject({ state: 'active', heartbeatDue: null });
    stage.list(['v-1']); // a list that is not there is another matter
    await stage.occurrence(3);
    expect(await stage.schedule()).toMatchObject({ state: 'paused', pausedBy: 'none_there' });
  });

  test('the same list again is only retried; without the option it pauses the schedule', async ({
    expect,
    onTestFinished,
  }) => {
    for (const retryFailed of [true, false]) {
      const stage = await openStage(onTestFinished, { retryFailed });
      stage.list(['v-0', 'c-0']);
      await stage.occurrence(1);
      stage.sent();
      await (retryFailed ? stage.occurrence(2) : stage.at(start + 2 * minute));
      expect(stage.sent()).toEqual(retryFailed ? ['c-0'] : []);
      expect((await stage.schedule()).pausedBy).toBe(retryFailed ? '' : 'same');
    }
  });

  test('a run of ids that are mostly unknown expects some of them to be gone', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['u-0', 'u-1', 'v-0']);
    await stage.occurrence(1);
    stage.list(['v-1']);
    expect(await stage.occurrence(2)).toMatchObject({ expectAbsent: true, counts: { absent: 2, deleted: 1 } });
  });

  test('--max-deletes counts the retried ids, too', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true, settings: { ...settings, maxDeletes: '3' } });
    stage.list(['v-0', 'c-0']);
    await stage.occurrence(1);
    stage.list(['v-1', 'v-2', 'v-3']);
    await stage.at(start + 2 * minute);
    const reason = 'the list and what earlier occurrences left hold 4 ids, --max-deletes allows 3';
    expect(await stage.schedule()).toMatchObject({ pausedBy: 'too_many', reason });
  });

  test('ids that an operator has retried meanwhile are not retried again, and those that were left out are', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['c-0', 'v-0', 'u-0', 'c-1', 'c-2', 'c-3']);
    const { id } = await stage.occurrence(1);
    const kept = ['--protect', stage.file('kept.txt', 'c-2\n')];
    const retry = ['retry', id, '--yes', '--json', '--on-status', '409=failed', '--only'];
    const first = summaryIn(await stage.expunge([...retry, 'unknown']));
    const second = summaryIn(await stage.expunge([...retry, 'failed', '--limit', '3', ...kept]));
    stage.sent();
    stage.list(['v-1']);
    await stage.occurrence(2);
    // An operator has kept c-2, and has not chosen c-3.
    expect(stage.sent()).toEqual(['c-3', 'v-1']);
    const reason = `run ${first.run}, ${second.run} has retried ids of run ${id}: they are not retried here`;
    expect((await stage.history())[0]).toMatchObject({ retried: 1, reason });
  });

  test('no id is retried where Redis has forgotten which of them an operator has retried', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'c-0', 'u-0']);
    const { id } = await stage.occurrence(1);
    const done = await stage.expunge(['retry', id, '--only', 'failed', '--yes', '--json', '--on-status', '409=failed']);
    const { run } = summaryIn(done);
    await unlinkRun(stage.redis, (await readRun(stage.redis, run))!);
    stage.sent();
    stage.list(['v-1']);
    await stage.occurrence(2);
    expect(stage.sent()).toEqual(['v-1']);
    const reason = `run ${run} has retried ids of run ${id}, and Redis does not record which: none is retried here`;
    expect((await stage.history())[0]).toMatchObject({ retried: 0, reason });
  });

  test('ids that are to be retried by a run that an operator cancels are told, and its list is not carried over', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'c-0', 'u-0']);
    const first = await stage.occurrence(1);
    await stage.rest();
    stage.sent();
    stage.list(['w-0', 'w-1']);
    await stage.at(start + 2 * minute);
    const { lastRun } = await stage.schedule();
    await stage.work.ledger.steer(lastRun, stage.now, { action: 'cancel', by: 'operator', who: 'ana', reason: '' });
    stage.list(['v-1']);
    await stage.at(start + 3 * minute);
    await stage.worker();
    const last = await stage.occurrence(3);
    expect((await readRun(stage.redis, lastRun))!).toMatchObject({ retryOf: first.id, counts: { not_attempted: 4 } });
    const told = `run ${lastRun} was cancelled: ids that it had not retried are not retried here either`;
    expect(stage.sent()).toEqual(['v-1']);
    expect(last.retryOf).toBe('');
    expect((await stage.history())[0]).toMatchObject({ retried: 0, reason: told });
  });

  test('files are archived although an id fails for ever; the heartbeat waits until that is gone or protected', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, {});
    const [folder, archive] = [join(stage.folder, 'in'), join(stage.folder, 'done')];
    mkdirSync(folder);
    stage.work.sources = readSources({ expired: { glob: join(folder, '*.txt'), archive, settle: '0s' } });
    const protect = stage.file('kept.txt', 'other\n');
    await stage.add({ settings: { ...settings, protect, expectUnprotected: 'true' }, retryFailed: true });
    for (const n of [1, 2]) {
      writeFileSync(join(folder, `${n}.txt`), `v-${n}\n${n === 1 ? 'c-0\n' : ''}`);
      await stage.occurrence(n);
      expect(readdirSync(folder)).toEqual([]);
      expect(stage.sent()).toEqual(['c-0', `v-${n}`]);
      expect(await stage.schedule()).toMatchObject({ heartbeatDue: null });
    }
    await stage.occurrence(3); // no file
    expect(stage.sent()).toEqual(['c-0']);
    stage.file('kept.txt', 'other\nc-0\n');
    await stage.occurrence(4);
    expect(stage.sent()).toEqual([]);
    expect((await stage.schedule()).heartbeatDue).not.toBeNull();
    writeFileSync(join(folder, '5.txt'), 'v-5\nc-1\n..\n');
    for (const n of [5, 6]) {
      await stage.occurrence(n); // nobody retries the rejected row
      expect(readdirSync(folder)).toEqual(['5.txt']);
    }
    expect(stage.sent()).toEqual(['c-1', 'c-1', 'v-5']);
  });

  test('ids of a run whose resources are defined in another way by now are not retried', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'c-0']);
    const run = await stage.occurrence(1);
    stage.sent();
    const definitions = JSON.stringify({ dashboards: { path: '/v1/dashboards/{id}' } });
    await stage.redis.hset(keys.run(run.id), 'definitions', definitions);
    stage.list(['v-1']);
    await stage.occurrence(2);
    expect(stage.sent()).toEqual(['v-1']);
    const reason = `ids that run ${run.id} left are not retried: the resource dashboards is not defined here`;
    expect((await stage.history())[0]).toMatchObject({ retried: 0, reason });
  });

  test('ids of a run that Redis has forgotten are told missing', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'c-0']);
    const run = await stage.occurrence(1);
    stage.sent();
    await unlinkRun(stage.redis, run);
    stage.list(['v-1']);
    await stage.occurrence(2);
    expect(stage.sent()).toEqual(['v-1']);
    const reason = `Redis no longer has run ${run.id}: ids that it left are not retried`;
    expect((await stage.history())[0]).toMatchObject({ retried: 0, reason });
  });

  test.for(['Redis has forgotten', 'an operator has cancelled'] as const)(
    'an id of an archived file is told missing where %s the run that knew of it and no file has come, and the heartbeat waits',
    async (lost, { expect, onTestFinished }) => {
      const stage = await openStage(onTestFinished, { retryFailed: true });
      const [folder, archive] = [join(stage.folder, 'in'), join(stage.folder, 'done')];
      mkdirSync(folder);
      stage.work.sources = readSources({ expired: { glob: join(folder, '*.txt'), archive, settle: '0s' } });
      writeFileSync(join(folder, '1.txt'), 'v-1\nc-0\n');
      const run = await stage.occurrence(1);
      expect(readdirSync(folder)).toEqual([]);
      let told = `Redis no longer has run ${run.id}: ids that it left are not retried`;
      if (lost === 'Redis has forgotten') await unlinkRun(stage.redis, run);
      else {
        await stage.rest();
        await stage.at(start + 2 * minute);
        const { lastRun } = await stage.schedule();
        await stage.work.ledger.steer(lastRun, stage.now, { action: 'cancel', ...authorAt(stage.now) });
        told = `run ${lastRun} was cancelled: ids that it had not retried are not retried here either`;
      }
      await stage.at(start + 3 * minute);
      const [entry] = await stage.history();
      expect(entry).toMatchObject({ outcome: 'empty', reason: expect.stringMatching(`no file is there.*; ${told}$`) });
      expect((await stage.schedule()).heartbeatDue).toBeNull();
    },
  );

  test('and --at-most no occurrence sends more, and ids that fail for ever do not keep others waiting', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true, atMost: 2 });
    stage.list(['c-0', 'c-1', 'v-0', 'v-1', 'v-2']);
    const sent: string[][] = [];
    for (let n = 1; n <= 4; n++) {
      const { files } = await stage.occurrence(n);
      expect(files.length).toBeLessThanOrEqual(2); // what is left for long does not collect names of lists
      sent.push(stage.sent());
    }
    expect(sent).toEqual([
      ['c-0', 'c-1'],
      ['v-0', 'v-1'],
      ['c-0', 'v-2'],
      ['c-0', 'c-1'],
    ]);
  });
});
