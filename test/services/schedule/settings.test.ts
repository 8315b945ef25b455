import { mkdirSync, rmSync } from 'node:fs';
import { describe, test } from 'vitest';
import { readSources } from '../../../src/config/list-source.ts';
import { unlinkRun } from '../../../src/ledger/end-run.ts';
import { announceProtection } from '../../../src/ledger/protection.ts';
import type { Run } from '../../../src/ledger/run.ts';
import { setMinGrace } from '../../../src/ledger/steer-target.ts';
import { keys } from '../../../src/redis/keys.ts';
import { dryRun, runNow } from '../../../src/schedule/follow-run.ts';
import { type Definition, scheduledSettings } from '../../../src/schedule/schedule.ts';
import { steerSchedule } from '../../../src/schedule/schedule-store.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

const [one, two] = [start + minute, start + 2 * minute];
const stop = () => new AbortController().signal;

type AtEnd = Parameters<typeof openScheduleHarness>[0];
type Texts = Definition['settings'];

const usual: Texts = { resource: 'views', maxDeletes: '100' };

const numbers = (n: number) => Array.from({ length: n }, (_, i) => `${100 + i}\n`).join('');

/** What each setting does to an occurrence: with it the list becomes these numbers, and the run this one. */
const effects: Record<
  (typeof scheduledSettings)[number],
  { settings: Texts; list: string; ids: number; run?: Partial<Run> }
> = {
  resource: { settings: { resource: 'annotations' }, list: 'a\nb\n', ids: 2 },
  resourceColumn: {
    settings: { resourceColumn: 'kind', format: 'csv' },
    list: 'kind,id\nviews,a\nannotations,b\n',
    ids: 2,
  },
  format: { settings: { format: 'csv' }, list: 'kind,id\nviews,a\n', ids: 1 },
  column: { settings: { format: 'csv', column: 'view' }, list: 'id,view\n1,a\n2,a\n', ids: 1 },
  noHeader: { settings: { format: 'csv', noHeader: 'true' }, list: 'a\nb\n', ids: 2 },
  delimiter: { settings: { format: 'csv', delimiter: ';' }, list: 'id;x\na;1\n', ids: 1 },
  comments: { settings: { comments: '#' }, list: '# nightly\na\nb  # by ana\n', ids: 2 },
  limit: { settings: { limit: '3' }, list: 'a\nb\nc\nd\n', ids: 3 },
  protect: { settings: { protect: 'never.txt' }, list: 'a\nb\nc\n', ids: 1, run: { ids: 1 } },
  allowIdChars: { settings: { allowIdChars: '/' }, list: 'a/b\nc\n', ids: 2 },
  allowPlaceholders: { settings: { allowPlaceholders: 'true' }, list: 'NULL\na\n', ids: 2 },
  allowInvisible: { settings: { allowInvisible: 'true' }, list: 'a\u200bb\nc\n', ids: 2 },
  allowColumnNames: { settings: { allowColumnNames: 'true' }, list: 'a1\nview_id\n', ids: 2 },
  allowDamagedNumbers: { settings: { allowDamagedNumbers: 'true' }, list: '12.0\na\n', ids: 2 },
  idPattern: { settings: { idPattern: '[a-z]' }, list: 'a\nb\nc1\n', ids: 2 },
  allowMixedIds: { settings: { allowMixedIds: 'true' }, list: `${numbers(30)}Total\n`, ids: 31, run: { ids: 31 } },
  expectProtected: {
    settings: { expectProtected: '2', protect: 'never.txt' },
    list: 'a\nb\nc\n',
    ids: 1,
    run: { ids: 1 },
  },
  allowOpenEnd: { settings: { allowOpenEnd: 'true' }, list: 'a\nb', ids: 2 },
  protectColumn: { settings: { protectColumn: 'key' }, list: 'a\n', ids: 1, run: { ids: 1 } },
  expectUnprotected: {
    settings: { expectUnprotected: 'true', protect: 'never.txt' },
    list: 'a\n',
    ids: 1,
    run: { ids: 1 },
  },
  expectRejected: { settings: { expectRejected: 'true' }, list: `a\n${'x/y\n'.repeat(12)}`, ids: 1 },
  maxDeletes: { settings: { maxDeletes: '2' }, list: 'a\nb\n', ids: 2 },
  expectCount: { settings: { expectCount: '1+-1' }, list: 'a\nb\n', ids: 2 },
  grace: { settings: { grace: '1s' }, list: 'a\n', ids: 1, run: { graceMs: 1_000 } },
  window: { settings: { window: '00:00-24:00' }, list: 'a\n', ids: 1, run: { window: '00:00-24:00' } },
  canary: { settings: { canary: '1,2' }, list: 'a\nb\nc\n', ids: 3, run: { canary: '1:1 2:2' } },
  maxFailures: { settings: { maxFailures: '5%' }, list: 'a\n', ids: 1, run: { maxFailures: '5%' } },
  onStatus: { settings: { onStatus: '404=failed' }, list: 'a\n', ids: 1, run: { onStatus: '404=failed' } },
  label: { settings: { label: 'team=ops' }, list: 'a\n', ids: 1, run: { labels: 'team=ops' } },
  allowEmpty: { settings: { allowEmpty: 'true' }, list: 'a\n', ids: 1, run: { ids: 1 } },
  expectAbsent: { settings: { expectAbsent: 'true' }, list: 'a\n', ids: 1, run: { expectAbsent: true } },
  expect: { settings: { expect: '403' }, list: 'a\n', ids: 1, run: { expect: '403' } },
  rate: { settings: { rate: '7/s' }, list: 'a\n', ids: 1, run: { rate: [{ count: 7, perMs: 1_000 }] } },
  keep: { settings: { keep: '2d' }, list: 'a\n', ids: 1, run: { keepMs: 2 * 86_400_000 } },
};

/** A schedule with these settings and this list. A file of protected ids is beside it. */
async function openWith(atEnd: AtEnd, settings: Texts, list: string): Promise<ScheduleHarness> {
  const harness = await openScheduleHarness(atEnd);
  harness.file('list', list);
  await addWith(harness, settings);
  return harness;
}

async function addWith(harness: ScheduleHarness, settings: Texts): Promise<void> {
  const never = harness.file('never.txt', 'b\nc\n');
  const ofResource = settings.resourceColumn === undefined ? usual : { maxDeletes: '100' };
  await harness.add({ settings: { ...ofResource, ...settings, ...(settings.protect && { protect: never }) } });
}

/** As if nothing had been made of the schedule. */
async function forgetAll({ redis, target }: ScheduleHarness, run: Run): Promise<void> {
  await unlinkRun(redis, run);
  await redis.del(keys.schedule(target.fp, 'nightly'), keys.scheduleHistory(target.fp, 'nightly'));
}

const ownFacts = ({
  sha256,
  ids,
  rows,
  window,
  canary,
  maxFailures,
  onStatus,
  expectAbsent,
  expect,
  rate,
  keepMs,
  counts,
}: Run) => {
  return { sha256, ids, rows, window, canary, maxFailures, onStatus, expectAbsent, expect, rate, keepMs, counts };
};

describe.concurrent('a setting of a schedule', () => {
  test.for(scheduledSettings.map((name) => [name, effects[name]] as const))(
    'holds for an occurrence, a run by hand and a dry run alike: %s',
    async ([name, { settings, list, ids, run: wanted = {} }], { expect, onTestFinished }) => {
      const harness = await openWith(onTestFinished, settings, list);
      const dry = await dryRun(harness.work, 'nightly', stop());
      expect(dry).toMatchObject({ list: { ids }, refusal: null });
      await harness.at(one);
      const [due] = await harness.runs();
      expect(due).toMatchObject({ ids, sha256: dry.list.sha256, ...wanted });

      await forgetAll(harness, due!);
      await addWith(harness, settings);
      harness.now = two;
      await runNow(harness.work, 'nightly', stop());
      const [byHand] = await harness.runs();
      expect(ownFacts(byHand!)).toEqual(ownFacts(due!));

      if (effects[name].run !== undefined || ['maxDeletes', 'expectCount'].includes(name)) return;
      await forgetAll(harness, byHand!);
      await addWith(harness, Object.fromEntries(Object.entries(settings).filter(([known]) => known !== name)));
      const without = await dryRun(harness.work, 'nightly', stop()).catch(() => null);
      expect(without?.list.sha256).not.toBe(dry.list.sha256); // it makes another list of the same file
    },
  );

  test('that bounds the list is asked by all three', async ({ expect, onTestFinished }) => {
    const harness = await openWith(onTestFinished, { maxDeletes: '2' }, 'a\nb\nc\n');
    expect((await dryRun(harness.work, 'nightly', stop())).refusal).toMatchObject({ guard: 'too_many' });
    expect(await runNow(harness.work, 'nightly', stop())).toMatchObject({ outcome: 'refused' });
    await harness.at(one);
    expect(await harness.schedule()).toMatchObject({ state: 'paused', pausedBy: 'too_many' });
  });
});

describe.concurrent('the times of a schedule', () => {
  const hour = 60 * minute;
  const timed = { tz: 'Europe/Berlin', settings: { ...usual, grace: '2h' }, maxActiveMs: hour, stopAt: '06:00' };
  const inBerlin = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', timeStyle: 'short' });

  test('hold for each of its runs, whether due or made by hand: when it starts, and when it pauses', async ({
    expect,
    onTestFinished,
  }) => {
    for (const make of [
      (harness: ScheduleHarness) => harness.at(one),
      (harness: ScheduleHarness) => runNow(harness.work, 'nightly', stop()),
    ]) {
      const harness = await openScheduleHarness(onTestFinished);
      harness.file('list', 'a\n');
      await harness.add(timed);
      await make(harness);
      const [run] = await harness.runs();
      expect(run).toMatchObject({ state: 'running', graceMs: 2 * hour, maxActiveMs: hour });
      expect(run!.startsAt - run!.acceptedAt).toBe(2 * hour);
      expect(inBerlin.format(run!.stopAt)).toBe('06:00');
      expect(run!.stopAt - one).toBeGreaterThan(2 * hour);
      expect(run!.stopAt - one).toBeLessThan(27 * hour);
    }
  });

  test('give way to the minimum of its target, which also moves the pause behind the start', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    harness.file('list', 'a\n');
    const minGraceMs = 30 * hour;
    const { redis, target } = harness;
    await setMinGrace(redis, target.fp, minGraceMs, { who: 'ana', reason: '', at: Date.now() });
    await harness.add({ ...timed, settings: usual, stopAt: '06:00 UTC' });
    await harness.at(one);
    const [run] = await harness.runs();
    expect(run!.startsAt - run!.acceptedAt).toBe(minGraceMs);
    expect(new Date(run!.stopAt).toISOString()).toMatch(/T06:00:00/);
    expect(run!.stopAt - one).toBeGreaterThan(minGraceMs);
  });
});

/** A schedule of 30 ids an occurrence that protects some. */
async function openProtected(atEnd: AtEnd, ids: string[]): Promise<{ harness: ScheduleHarness; path: string }> {
  const harness = await openScheduleHarness(atEnd);
  const path = writeProtected(harness, ids);
  harness.list(someIds('v', 30));
  await harness.add({ settings: { ...usual, protect: path } }, { ids: ids.length, sha256: 'as it was' });
  return { harness, path };
}

function writeProtected(harness: ScheduleHarness, ids: string[]): string {
  return harness.file('never.txt', ids.map((id) => `${id}\n`).join(''));
}

const author = (at: number) => ({ at, by: 'operator', who: 'ana@test', reason: 'I have looked' }) as const;

describe.concurrent('the protected ids of a schedule', () => {
  test('are left out by its occurrences', async ({ expect, onTestFinished }) => {
    const { harness } = await openProtected(onTestFinished, ['v-3', 'v-7']);
    await harness.at(one);
    expect((await harness.runs()).map(({ rows, ids, counts }) => [rows, ids, counts.protected])).toEqual([[30, 28, 2]]);
  });

  test.for<[string, (harness: ScheduleHarness, path: string) => void, RegExp]>([
    ['is not there', (_, path) => rmSync(path), /never.txt: not found here/],
    ['is no file', (_, path) => [rmSync(path), mkdirSync(path)], /never.txt: expected a file/],
    ['is empty', (harness) => void writeProtected(harness, []), /never.txt/],
    [
      'holds what no id can be',
      (harness) => void writeProtected(harness, ['v-3', 'v-7 ']),
      /never.txt:2: .*v-7 .* would protect no id/,
    ],
  ])(
    'keep an occurrence from deleting anything where their file %s',
    async ([, spoil, words], { expect, onTestFinished }) => {
      const { harness, path } = await openProtected(onTestFinished, ['v-3', 'v-7']);
      spoil(harness, path);
      await harness.at(one);
      expect(await harness.runs()).toEqual([]);
      const [entry] = await harness.history();
      expect(entry).toMatchObject({ outcome: expect.stringMatching(/failed|refused/) });
      expect(entry!.reason).toMatch(words);
      expect(harness.told.join('\n')).toMatch(words);
    },
  );

  test('that have become more are applied, and told once', async ({ expect, onTestFinished }) => {
    const { harness } = await openProtected(onTestFinished, ['v-3', 'v-7']);
    await harness.at(one);
    await harness.finish((await harness.schedule()).lastRun);
    writeProtected(harness, ['v-3', 'v-7', 'w-9']);
    harness.list(['v-3', 'v-7', ...someIds('w', 30)]);
    const change = 'the protected ids have changed: 2 before, 3 now';
    expect(await dryRun(harness.work, 'nightly', stop())).toMatchObject({ change, protectedRows: 3, refusal: null });
    await harness.at(two);
    expect((await harness.history())[0]).toMatchObject({ outcome: 'started', reason: change });
    expect((await harness.runs()).at(-1)!.counts.protected).toBe(3);
    expect(harness.told.join('\n')).toContain(change);
    await harness.finish((await harness.schedule()).lastRun);
    expect(await dryRun(harness.work, 'nightly', stop())).toMatchObject({ change: '' });
  });

  test('that have become fewer pause it, until somebody has looked', async ({ expect, onTestFinished }) => {
    const { harness } = await openProtected(onTestFinished, ['v-3', 'v-7']);
    writeProtected(harness, ['v-3']);
    await harness.at(one);
    const reason = expect.stringMatching(/never.txt holds 1 protected id, it held 2$/);
    expect(await harness.schedule()).toMatchObject({ state: 'paused', pausedBy: 'protected', reason });
    expect(await harness.runs()).toEqual([]);
    await steerSchedule(harness.redis, harness.target.fp, 'nightly', 'resume', author(one + 1_000));
    await harness.at(two);
    expect((await harness.runs()).map(({ ids }) => ids)).toEqual([29]);
    expect((await harness.schedule()).protectedList).toMatchObject({ ids: 1 });
  });

  test('that only the process was told of keep it from making a run', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    harness.list(someIds('v', 30));
    await harness.add();
    const work = { ...harness.work, protectFile: '/data/never.txt' };
    const words = 'schedule nightly protects no ids, but the settings of this process name /data/never.txt';
    await expect(dryRun(work, 'nightly', stop())).rejects.toThrow(words);
    expect(await runNow(work, 'nightly', stop())).toEqual({ outcome: 'failed', reason: words });
    await harness.at(one, { protectFile: '/data/never.txt' });
    expect(await harness.runs()).toEqual([]);
    expect((await harness.history())[0]).toMatchObject({ outcome: 'failed', reason: words });
  });

  test('that only another worker of the target was told of keep each process from making a run', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    harness.list(someIds('v', 30));
    await harness.add();
    await announceProtection(harness.redis, harness.target.fp, protectedIds('other'));
    const words = 'the list protects no ids, but the settings of a worker of its target do; nothing was sent';
    await harness.at(one);
    expect(await harness.runs()).toEqual([]);
    expect((await harness.history())[0]).toMatchObject({ outcome: 'failed', reason: words });
  });

  test('of another file than that of a worker keep no id in a run that the worker protects', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    const list = someIds('v', 30);
    harness.list(list);
    await harness.add({ settings: { ...usual, protect: writeProtected(harness, [list[0]!]) } });
    await announceProtection(harness.redis, harness.target.fp, protectedIds(list[0]!, list[7]!));
    await harness.at(one);
    expect(await harness.runs()).toEqual([]);
    const reason = `${list[7]} would be deleted, but the settings of a worker of its target protect it; nothing was sent`;
    expect((await harness.history())[0]).toMatchObject({ outcome: 'failed', reason });
    await announceProtection(harness.redis, harness.target.fp, protectedIds(list[0]!, 'elsewhere'));
    await harness.at(two);
    expect((await harness.runs()).map(({ ids }) => ids)).toEqual([29]);
  });
});

async function* protectedIds(...ids: string[]) {
  yield ids;
}

test('a list that is being read while its schedule is changed becomes no run by the settings of before', async ({
  expect,
  onTestFinished,
}) => {
  const harness = await openScheduleHarness(onTestFinished);
  const settings = { ...usual, protect: writeProtected(harness, ['v-3']) };
  const list = harness.file('in.txt', 'v-3\nv-4\n');
  const sources = readSources({ expired: { glob: list } });
  await harness.add();
  await harness.at(one, { sources, wait: () => harness.add({ settings }, { ids: 1, sha256: 'as it was' }) });
  expect(await harness.runs()).toEqual([]);
  await harness.at(two, { sources });
  expect((await harness.runs()).map(({ ids, counts }) => [ids, counts.protected])).toEqual([[1, 1]]);
});

test('files of which --limit left rows are not put away', async ({ expect, onTestFinished }) => {
  const harness = await openWith(onTestFinished, { limit: '2' }, '');
  const path = harness.file('in.txt', 'a\nb\nc\n');
  const sources = readSources({ expired: { glob: path, archive: `${harness.folder}/done` } });
  await harness.at(one, { sources });
  expect((await harness.runs()).map(({ ids }) => ids)).toEqual([2]);
  expect((await harness.schedule()).toArchive).toBeNull();
});
