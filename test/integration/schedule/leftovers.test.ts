import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { readSources } from '../../../src/config/list-source.ts';
import { removeRun } from '../../../src/ledger/end-run.ts';
import { isSealed, type Run, readRun } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import type { FaultKind } from '../../../src/sandbox/fault-kinds.ts';
import type { Definition } from '../../../src/schedule/schedule.ts';
import { steerSchedule } from '../../../src/schedule/schedule-store.ts';
import { summaryIn } from '../../support/command.ts';
import type { AtEnd } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

type Stage = ScheduleHarness & {
  /** Makes the run of the nth slot, waits until its worker has deleted it, and records its end. */
  slot(n: number): Promise<Run>;
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
  await harness.worker();
  let told = 0;
  const slot = async (n: number) => {
    await harness.at(start + n * minute);
    const { lastRun } = await harness.schedule();
    const run = await until(`slot ${n} has ended`, async () => {
      const found = await readRun(harness.redis, lastRun);
      return found !== null && isSealed(found.state) ? found : null;
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
  return Object.assign(harness, { slot, sent });
}

const ten = someIds('v', 10);
const others = [...'wcu'].flatMap((word) => someIds(word, 5));
const objects = [...ten, ...others, ...someIds('new', 5)].map((id) => ({ resource: 'views' as const, id }));
const orderAt = (at: number) => ({ at, by: 'operator', who: 'ana@test', reason: '' }) as const;

describe.concurrent('with --at-most', () => {
  test('a slot deletes that many ids, the next ones the rest, and each id is sent once', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 4 });
    stage.list(ten);
    expect(await stage.slot(1)).toMatchObject({ state: 'completed', rows: 4, ids: 4 });
    expect(stage.sent()).toEqual(ten.slice(0, 4));
    expect((await stage.history())[0]).toMatchObject({
      carried: 6,
      retried: 0,
      rows: 4,
      ended: { deleted: 4, left: 0 },
    });
    stage.list(someIds('w', 1)); // the file was replaced: nobody else knows the other ids
    await stage.slot(2);
    expect(stage.sent()).toEqual(ten.slice(4, 8));
    expect((await stage.schedule()).carried).toMatchObject({ ids: 3 });
    await stage.slot(3); // the same list again: it was taken over already
    expect(stage.sent()).toEqual([...ten.slice(8), 'w-0']);
    expect((await stage.history())[0]).toMatchObject({ carried: 0, ended: { deleted: 3, left: 0 } });
    expect(await stage.redis.exists(keys.scheduleCarried(stage.target.fp, 'nightly'))).toBe(0);
    await stage.at(start + 4 * minute);
    expect(await stage.schedule()).toMatchObject({ state: 'paused', pausedBy: 'same' });
  });

  test('a source that still lists the carried ids has none of them sent twice, nor grows what is carried', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 3 });
    const gone = new Set<string>();
    for (let n = 1; n <= 4; n++) {
      stage.list([...ten.filter((id) => !gone.has(id)), `new-${n}`]);
      await stage.slot(n);
      for (const id of stage.sent()) {
        expect(gone.has(id)).toBe(false);
        gone.add(id);
      }
      expect(gone.size).toBe(3 * n);
      expect((await stage.schedule()).carried).toMatchObject({ ids: 10 + n - 3 * n });
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
    // The second v-2 repeats a carried id, and is that id.
    expect(run).toMatchObject({ ids: 2, rows: 6, counts: { rejected: 1, duplicate: 2, protected: 1 } });
    expect((await harness.schedule()).carried).toMatchObject({ ids: 1 });
  });

  test('a carried id that has come under protection is not deleted', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, {});
    const protect = stage.file('kept.txt', 'other\n');
    await stage.add({ settings: { ...settings, protect }, atMost: 8 });
    stage.list(ten);
    await stage.slot(1);
    stage.sent();
    stage.file('kept.txt', 'other\nv-9\n');
    stage.list(['w-0']);
    const run = await stage.slot(2);
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

/** A process that makes the run of a slot and hangs where it claims the slot: before Redis has the claim, or before it has the answer. */
function hangingAtClaim({ work }: Stage, when: 'before' | 'after') {
  const [reached, woken] = [signal(), signal()];
  const { redis } = work.ledger;
  const claimRun = 2 + 8 + 2; // of the arguments: script, number of keys, keys, token, '1' if active, run
  const call = async (...args: Parameters<typeof redis.eval>) => {
    if (!String(args[0]).includes("'RENAME'") || args[claimRun] === '') return redis.eval(...args);
    const early = when === 'after' ? await redis.eval(...args) : null;
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

describe.concurrent('what a schedule carries', () => {
  test.for(['before', 'after'] as const)(
    'is deleted once where a process hangs %s its claim of a slot, and another one takes over',
    async (when, { expect, onTestFinished }) => {
      const stage = await openStage(onTestFinished, { atMost: 4 });
      stage.list(ten);
      await stage.slot(1);
      stage.list(['w-0', 'w-1', 'w-2']);
      const hanging = hangingAtClaim(stage, when);
      const asleep = stage.at(start + 2 * minute, hanging.work);
      await hanging.reached;
      await stage.redis.del(keys.scheduleLease(stage.target.fp, 'nightly')); // as it is 15 s later
      await stage.slot(2);
      hanging.wake();
      await asleep;
      await stage.slot(3);
      await stage.slot(4);
      expect(stage.sent()).toEqual([...ten, 'w-0', 'w-1', 'w-2']);
      const history = (await stage.history()).toReversed();
      expect(history.map(({ rows, carried, ended }) => [rows, carried, ended?.deleted])).toEqual([
        [4, 6, 4],
        [4, 5, 4],
        [4, 1, 4],
        [1, 0, 1],
      ]);
      expect(await stage.runs()).toHaveLength(4);
    },
  );

  test('is deleted also where the source has nothing more, since its files were put away', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { atMost: 6 });
    const [folder, archive] = [join(stage.folder, 'in'), join(stage.folder, 'done')];
    mkdirSync(folder);
    writeFileSync(join(folder, 'a.txt'), `${ten.join('\n')}\n`);
    stage.work.sources = readSources({ expired: { glob: join(folder, '*.txt'), archive, settle: '0s' } });
    await stage.slot(1);
    expect(readdirSync(folder)).toEqual([]);
    await stage.slot(2);
    expect(stage.sent()).toEqual(ten);
    await stage.at(start + 3 * minute);
    expect((await stage.history())[0]).toMatchObject({ outcome: 'empty' });
  });

  test('stays through a slot without a run, and a change of the schedule', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { atMost: 6 });
    stage.list(ten);
    await stage.slot(1);
    stage.list([]);
    await stage.at(start + 2 * minute);
    expect(await stage.schedule()).toMatchObject({ state: 'paused', pausedBy: 'empty', carried: { ids: 4 } });
    stage.list(['w-0']);
    await stage.add({ settings, atMost: 0 });
    await steerSchedule(stage.redis, stage.target.fp, 'nightly', 'resume', orderAt(stage.now));
    await stage.slot(3);
    expect(stage.sent()).toEqual([...ten, 'w-0']);
  });

  test('is dropped with its schedule, and is not there for one of that name', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { atMost: 6, retryFailed: true });
    stage.list(ten);
    await stage.slot(1);
    stage.sent();
    const { redis, target } = stage;
    await steerSchedule(redis, target.fp, 'nightly', 'remove', orderAt(stage.now));
    expect(await redis.pttl(keys.scheduleCarried(target.fp, 'nightly'))).toBeGreaterThan(0);
    await stage.add({ settings, atMost: 6, retryFailed: true });
    stage.list(['w-0']);
    await stage.slot(2);
    expect(stage.sent()).toEqual(['w-0']);
  });

  test('is told missing where Redis has lost it, and nothing is deleted', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { atMost: 6 });
    stage.list(ten);
    const { id } = await stage.slot(1);
    await stage.redis.del(keys.scheduleCarried(stage.target.fp, 'nightly'));
    await stage.at(start + 2 * minute);
    const reason = `Redis has lost ids that run ${id} left to the next slot: expected 4, got 0`;
    expect((await stage.history())[0]).toMatchObject({ outcome: 'failed', reason });
    expect(await stage.runs()).toHaveLength(1);
  });

  test('holds what the next slot cancelled also where Redis was replaced: those ids are unknown then', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openScheduleHarness(onTestFinished);
    await stage.add({ atMost: 4, overlap: 'cancel-other' });
    stage.list(ten);
    await stage.at(start + minute);
    const { lastRun } = await stage.schedule();
    await stage.redis.hset(keys.run(lastRun), 'server', 'another process');
    stage.list(['w-0']);
    await stage.at(start + 2 * minute);
    expect((await readRun(stage.redis, lastRun))!.counts).toMatchObject({ unknown: 4, not_attempted: 0 });
    expect((await stage.history())[0]).toMatchObject({ outcome: 'started', rows: 4, carried: 7 });
  });

  test('is told missing where the run that was to delete it is lost before its end was seen', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add({ atMost: 4 });
    harness.list(ten);
    await harness.at(start + minute);
    const [run] = await harness.runs();
    await removeRun(harness.redis, run!);
    harness.list(['w-0']);
    await harness.at(start + 2 * minute);
    const reason = `Redis no longer has run ${run!.id}: ids that it left are not retried`;
    expect((await harness.history())[0]).toMatchObject({ outcome: 'started', rows: 4, carried: 3, reason });
  });

  test('is not told missing where Redis has forgotten a run that completed', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { atMost: 4 });
    stage.list(['v-0', 'c-0']);
    await removeRun(stage.redis, await stage.slot(1));
    stage.list(['v-1']);
    await stage.slot(2);
    expect((await stage.history())[0]).toMatchObject({ outcome: 'started', reason: '' });
  });

  test('holds what the next slot cancelled of a run, and not what an operator cancelled', async ({
    expect,
    onTestFinished,
  }) => {
    for (const by of ['guard', 'operator'] as const) {
      const stage = await openScheduleHarness(onTestFinished);
      await stage.add({ atMost: 4, overlap: 'cancel-other' });
      stage.list(ten);
      await stage.at(start + minute);
      const { lastRun } = await stage.schedule();
      if (by === 'operator') {
        await stage.work.ledger.steer(lastRun, stage.now, { action: 'cancel', by, who: 'ana', reason: '' });
      }
      stage.list(['w-0']);
      await stage.at(start + 2 * minute);
      expect((await stage.history())[0]).toMatchObject({
        outcome: 'started',
        rows: 4,
        carried: by === 'guard' ? 7 : 3,
      });
    }
  });
});

const faults: Record<string, FaultKind> = { c: 'status-409', u: 'status-200-executed' };

describe.concurrent('with --retry-failed', () => {
  test('a slot sends again what the last one left as failed or unknown, until it is gone, and says so', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'v-1', 'c-0', 'u-0', 'v-2']);
    const first = await stage.slot(1);
    expect(first.counts).toMatchObject({ deleted: 3, failed: 1, unknown: 1 });
    stage.sent();
    stage.list(['v-3', 'v-4', 'v-5']);
    const second = await stage.slot(2);
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
    await stage.slot(3);
    expect(stage.sent()).toEqual(['c-0', 'v-6']);
    expect((await stage.history())[0]).toMatchObject({ retried: 1, ended: { left: 0 } });
    stage.list(['v-7']);
    expect(await stage.slot(4)).toMatchObject({ retryOf: '' });
    expect(stage.sent()).toEqual(['v-7']);
  });

  test('the same list again is only retried; without the option it pauses the schedule', async ({
    expect,
    onTestFinished,
  }) => {
    for (const retryFailed of [true, false]) {
      const stage = await openStage(onTestFinished, { retryFailed });
      stage.list(['v-0', 'c-0']);
      await stage.slot(1);
      stage.sent();
      await (retryFailed ? stage.slot(2) : stage.at(start + 2 * minute));
      expect(stage.sent()).toEqual(retryFailed ? ['c-0'] : []);
      expect((await stage.schedule()).pausedBy).toBe(retryFailed ? '' : 'same');
    }
  });

  test('a run of ids that are mostly unknown expects some of them to be gone', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['u-0', 'u-1', 'v-0']);
    await stage.slot(1);
    stage.list(['v-1']);
    expect(await stage.slot(2)).toMatchObject({ expectAbsent: true, counts: { absent: 2, deleted: 1 } });
  });

  test('--max-deletes counts the retried ids, too', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true, settings: { ...settings, maxDeletes: '3' } });
    stage.list(['v-0', 'c-0']);
    await stage.slot(1);
    stage.list(['v-1', 'v-2', 'v-3']);
    await stage.at(start + 2 * minute);
    const reason = 'the list and what earlier slots left hold 4 ids, --max-deletes allows 3';
    expect(await stage.schedule()).toMatchObject({ pausedBy: 'too_many', reason });
  });

  test('ids that an operator has retried meanwhile are not retried again', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'c-0', 'u-0']);
    const { id } = await stage.slot(1);
    const done = await stage.expunge(['retry', id, '--only', 'failed', '--yes', '--json', '--on-status', '409=failed']);
    const { run } = summaryIn(done);
    stage.sent();
    stage.list(['v-1']);
    await stage.slot(2);
    expect(stage.sent()).toEqual(['v-1']);
    // The operator did not choose u-0, so it must not be called retried.
    const reason = `run ${run} has retried ids of run ${id}, which left 2 ids: none is retried here`;
    expect((await stage.history())[0]).toMatchObject({ retried: 0, reason });
  });

  test('ids of a run that Redis has forgotten are told missing', async ({ expect, onTestFinished }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true });
    stage.list(['v-0', 'c-0']);
    const run = await stage.slot(1);
    stage.sent();
    await removeRun(stage.redis, run);
    stage.list(['v-1']);
    await stage.slot(2);
    expect(stage.sent()).toEqual(['v-1']);
    const reason = `Redis no longer has run ${run.id}: ids that it left are not retried`;
    expect((await stage.history())[0]).toMatchObject({ retried: 0, reason });
  });

  test('and --at-most no slot sends more, and ids that fail for ever do not keep others waiting', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(onTestFinished, { retryFailed: true, atMost: 2 });
    stage.list(['c-0', 'c-1', 'v-0', 'v-1', 'v-2']);
    const sent: string[][] = [];
    for (let n = 1; n <= 4; n++) {
      const { files } = await stage.slot(n);
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
