import { mkdirSync, rmSync } from 'node:fs';
import { describe, test } from 'vitest';
import { readSources } from '../../../src/config/list-source.ts';
import type { Run } from '../../../src/ledger/run.ts';
import { dryRun, runNow } from '../../../src/schedule/follow-run.ts';
import { type Definition, scheduledSettings } from '../../../src/schedule/schedule.ts';
import { steerSchedule } from '../../../src/schedule/schedule-store.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from './schedule-harness.ts';

const [one, two] = [start + minute, start + 2 * minute];
const stop = () => new AbortController().signal;

type AtEnd = Parameters<typeof openScheduleHarness>[0];
type Texts = Definition['settings'];

const usual: Texts = { resource: 'views', maxDeletes: '100' };

/** What each setting does to a slot: with it the list becomes these numbers, and the run this one. */
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
  limit: { settings: { limit: '3' }, list: 'a\nb\nc\nd\n', ids: 3 },
  protect: { settings: { protect: 'never.txt' }, list: 'a\nb\nc\n', ids: 1, run: { ids: 1 } },
  allowIdChars: { settings: { allowIdChars: '/' }, list: 'a/b\nc\n', ids: 2 },
  allowPlaceholders: { settings: { allowPlaceholders: 'true' }, list: 'NULL\na\n', ids: 2 },
  expectRejected: { settings: { expectRejected: 'true' }, list: `a\n${'x/y\n'.repeat(12)}`, ids: 1 },
  maxDeletes: { settings: { maxDeletes: '2' }, list: 'a\nb\n', ids: 2 },
  onStatus: { settings: { onStatus: '404=failed' }, list: 'a\n', ids: 1, run: { onStatus: '404=failed' } },
  expectAbsent: { settings: { expectAbsent: 'true' }, list: 'a\n', ids: 1, run: { expectAbsent: true } },
  rate: { settings: { rate: '7/s' }, list: 'a\n', ids: 1, run: { rate: [{ count: 7, perMs: 1_000 }] } },
  burst: { settings: { burst: '3' }, list: 'a\n', ids: 1, run: { burst: 3 } },
  keep: { settings: { keep: '2d' }, list: 'a\n', ids: 1, run: { keepMs: 2 * 86_400_000 } },
};

/** A schedule with these settings and this list. A file of protected ids is beside it. */
async function openWith(atEnd: AtEnd, settings: Texts, list: string): Promise<ScheduleHarness> {
  const stage = await openScheduleHarness(atEnd);
  stage.file('list', list);
  const never = stage.file('never.txt', 'b\nc\n');
  const ofResource = settings.resourceColumn === undefined ? usual : { maxDeletes: '100' };
  await stage.add({ settings: { ...ofResource, ...settings, ...(settings.protect && { protect: never }) } });
  return stage;
}

const ownFacts = ({ sha256, ids, rows, onStatus, expectAbsent, rate, burst, keepMs, counts }: Run) => {
  return { sha256, ids, rows, onStatus, expectAbsent, rate, burst, keepMs, counts };
};

describe.concurrent('a setting of a schedule', () => {
  test.for(scheduledSettings.map((name) => [name, effects[name]] as const))(
    'holds for a slot, a run by hand and a dry run alike: %s',
    async ([, { settings, list, ids, run: wanted = {} }], { expect, onTestFinished }) => {
      const [bySlot, byHand] = await Promise.all([
        openWith(onTestFinished, settings, list),
        openWith(onTestFinished, settings, list),
      ]);
      const dry = await dryRun(bySlot.work, 'nightly', stop());
      expect(dry).toMatchObject({ list: { ids }, refusal: null });
      await bySlot.at(one);
      await runNow(byHand.work, 'nightly', stop());
      const [run] = await bySlot.runs();
      expect(run).toMatchObject({ ids, sha256: dry.list.sha256, ...wanted });
      expect(ownFacts((await byHand.runs())[0]!)).toEqual(ownFacts(run!));
    },
  );

  test.for(scheduledSettings.filter((name) => effects[name].run === undefined && name !== 'maxDeletes'))(
    'makes another list of the same file: %s',
    async (name, { expect, onTestFinished }) => {
      const { settings, list } = effects[name];
      const stage = await openWith(onTestFinished, settings, list);
      const others = Object.fromEntries(Object.entries(settings).filter(([known]) => known !== name));
      const without = await openWith(onTestFinished, others, list);
      const { list: made } = await dryRun(stage.work, 'nightly', stop());
      const plain = await dryRun(without.work, 'nightly', stop()).catch(() => null);
      expect(plain?.list.sha256).not.toBe(made.sha256);
    },
  );

  test('that bounds the list is asked by all three', async ({ expect, onTestFinished }) => {
    const stage = await openWith(onTestFinished, { maxDeletes: '2' }, 'a\nb\nc\n');
    expect((await dryRun(stage.work, 'nightly', stop())).refusal).toMatchObject({ guard: 'too_many' });
    expect(await runNow(stage.work, 'nightly', stop())).toMatchObject({ outcome: 'refused' });
    await stage.at(one);
    expect(await stage.schedule()).toMatchObject({ state: 'paused', pausedBy: 'too_many' });
  });
});

/** A schedule of 30 ids a slot that protects some. */
async function openProtected(atEnd: AtEnd, ids: string[]): Promise<{ stage: ScheduleHarness; path: string }> {
  const stage = await openScheduleHarness(atEnd);
  const path = writeProtected(stage, ids);
  stage.list(someIds('v', 30));
  await stage.add({ settings: { ...usual, protect: path } }, { ids: ids.length, sha256: 'as it was' });
  return { stage, path };
}

function writeProtected(stage: ScheduleHarness, ids: string[]): string {
  return stage.file('never.txt', ids.map((id) => `${id}\n`).join(''));
}

const order = (at: number) => ({ at, by: 'operator', who: 'ana@test', reason: 'I have looked' }) as const;

describe.concurrent('the protected ids of a schedule', () => {
  test('are left out by its slots', async ({ expect, onTestFinished }) => {
    const { stage } = await openProtected(onTestFinished, ['v-3', 'v-7']);
    await stage.at(one);
    expect((await stage.runs()).map(({ rows, ids, counts }) => [rows, ids, counts.protected])).toEqual([[30, 28, 2]]);
  });

  test.for<[string, (stage: ScheduleHarness, path: string) => void, RegExp]>([
    ['is not there', (_, path) => rmSync(path), /never.txt: not found here/],
    ['is no file', (_, path) => [rmSync(path), mkdirSync(path)], /never.txt: expected a file/],
    ['is empty', (stage) => void writeProtected(stage, []), /never.txt/],
    ['holds what no id can be', (stage) => void writeProtected(stage, ['v-3', 'v-7 ']), /never.txt:2: this protected/],
  ])('keep a slot from deleting anything where their file %s', async ([, spoil, words], { expect, onTestFinished }) => {
    const { stage, path } = await openProtected(onTestFinished, ['v-3', 'v-7']);
    spoil(stage, path);
    await stage.at(one);
    expect(await stage.runs()).toEqual([]);
    const [entry] = await stage.history();
    expect(entry).toMatchObject({ outcome: expect.stringMatching(/failed|refused/) });
    expect(entry!.reason).toMatch(words);
    expect(stage.told.join('\n')).toMatch(words);
  });

  test('that have become more are applied, and told once', async ({ expect, onTestFinished }) => {
    const { stage } = await openProtected(onTestFinished, ['v-3', 'v-7']);
    await stage.at(one);
    await stage.finish((await stage.schedule()).lastRun);
    writeProtected(stage, ['v-3', 'v-7', 'w-9']);
    stage.list(someIds('w', 30));
    const change = 'the protected ids have changed: 2 before, 3 now';
    expect(await dryRun(stage.work, 'nightly', stop())).toMatchObject({ change, protectedRows: 1, refusal: null });
    await stage.at(two);
    expect((await stage.history())[0]).toMatchObject({ outcome: 'started', reason: change });
    expect((await stage.runs()).at(-1)!.counts.protected).toBe(1);
    expect(stage.told.join('\n')).toContain(change);
    await stage.finish((await stage.schedule()).lastRun);
    expect(await dryRun(stage.work, 'nightly', stop())).toMatchObject({ change: '' });
  });

  test('that have become fewer pause it, until somebody has looked', async ({ expect, onTestFinished }) => {
    const { stage } = await openProtected(onTestFinished, ['v-3', 'v-7']);
    writeProtected(stage, ['v-3']);
    await stage.at(one);
    const reason = expect.stringMatching(/never.txt holds 1 protected id, it held 2$/);
    expect(await stage.schedule()).toMatchObject({ state: 'paused', pausedBy: 'protected', reason });
    expect(await stage.runs()).toEqual([]);
    await steerSchedule(stage.redis, stage.target.fp, 'nightly', 'resume', order(one + 1_000));
    await stage.at(two);
    expect((await stage.runs()).map(({ ids }) => ids)).toEqual([29]);
    expect((await stage.schedule()).protectedList).toMatchObject({ ids: 1 });
  });

  test('that only the process was told of keep it from making a run', async ({ expect, onTestFinished }) => {
    const stage = await openScheduleHarness(onTestFinished);
    stage.list(someIds('v', 30));
    await stage.add();
    const work = { ...stage.work, protectFile: '/data/never.txt' };
    const words = 'schedule nightly protects no ids, but the settings of this process name /data/never.txt';
    await expect(dryRun(work, 'nightly', stop())).rejects.toThrow(words);
    expect(await runNow(work, 'nightly', stop())).toEqual({ outcome: 'failed', reason: words });
    await stage.at(one, { protectFile: '/data/never.txt' });
    expect(await stage.runs()).toEqual([]);
    expect((await stage.history())[0]).toMatchObject({ outcome: 'failed', reason: words });
  });
});

test('a list that is being read while its schedule is changed becomes no run by the settings of before', async ({
  expect,
  onTestFinished,
}) => {
  const stage = await openScheduleHarness(onTestFinished);
  const settings = { ...usual, protect: writeProtected(stage, ['v-3']) };
  const list = stage.file('in.txt', 'v-3\nv-4\n');
  const sources = readSources({ expired: { glob: list } });
  await stage.add();
  await stage.at(one, { sources, wait: () => stage.add({ settings }, { ids: 1, sha256: 'as it was' }) });
  expect(await stage.runs()).toEqual([]);
  await stage.at(two, { sources });
  expect((await stage.runs()).map(({ ids, counts }) => [ids, counts.protected])).toEqual([[1, 1]]);
});

test('files of which --limit left rows are not put away', async ({ expect, onTestFinished }) => {
  const stage = await openWith(onTestFinished, { limit: '2' }, '');
  const path = stage.file('in.txt', 'a\nb\nc\n');
  const sources = readSources({ expired: { glob: path, archive: `${stage.folder}/done` } });
  await stage.at(one, { sources });
  expect((await stage.runs()).map(({ ids }) => ids)).toEqual([2]);
  expect((await stage.schedule()).toArchive).toBeNull();
});
