import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import type { Run } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';
import { openReceiver } from '../../support/receiver.ts';

const [present, gone] = [makeIds('p', 3), makeIds('g', 3)];

type Inbox = {
  harness: Harness;
  /** Puts a list into the inbox, lets the schedule make a run of it, and returns that run once its end is recorded. */
  takes(ids: readonly string[]): Promise<Run>;
  /** The files that are still in the inbox, and those in the archive. */
  files(): { left: string[]; archived: string[] };
  /** How often the heartbeat was called. */
  heartbeats(): number;
  /** What a receiver of notifications was sent. */
  events(): { type: string; text: string; data: Record<string, unknown> }[];
  listed(): Promise<string>;
  state(): Promise<string | null>;
};

/** A schedule whose lists are files, with an archive, a heartbeat and a worker that reports events. None of its occurrences comes by itself. */
async function openInbox(atEnd: AtEnd, ...flags: string[]): Promise<Inbox> {
  const harness = await openHarness(atEnd, { objects: annotations(present) });
  const [monitor, receiver] = [await openReceiver(atEnd), await openReceiver(atEnd)];
  const [inbox, archive] = [join(harness.folder, 'in'), join(harness.folder, 'done')];
  mkdirSync(inbox);
  const sources = { inbox: { glob: join(inbox, '*.txt'), archive, settle: '10ms' } };
  const env = {
    EXPUNGE_CONFIG: harness.file('config.json', JSON.stringify({ sources })),
    EXPUNGE_RETRY_DELAYS: '10ms,10ms,10ms,10ms,10ms',
  };
  const worker = ['--notify', receiver.url, '--http', '0'];
  await harness.worker(worker, env);
  const definition = ['--cron', '0 0 1 1 *', '--from', 'inbox', '--resource', 'annotations', '--max-deletes', '10'];
  const add = ['schedule', 'add', 'nightly', ...definition, '--heartbeat', `${monitor.url}/beat`, ...flags];
  await harness.expunge(add);
  const isFollowed = async (run: string) =>
    (await harness.redis.hget(keys.schedule(harness.target.fp, 'nightly'), 'lastRun')) === run &&
    (await harness.redis.hget(keys.schedule(harness.target.fp, 'nightly'), 'lastState')) === 'completed';
  const takes = async (ids: readonly string[]) => {
    harness.file('in/list.txt', `${ids.join('\n')}\n`);
    const { stdout, stderr } = await harness.expunge(['schedule', 'run', 'nightly', '--json'], { env });
    if (stdout === '') throw new Error(stderr);
    const { run } = JSON.parse(stdout);
    await until('the end of the run is recorded', () => isFollowed(run));
    return (await harness.runs()).find(({ id }) => id === run)!;
  };
  const namesIn = (folder: string) => readdirSync(folder, { recursive: true, withFileTypes: true });
  return {
    harness,
    takes,
    files: () => ({
      left: readdirSync(inbox),
      archived: existing(archive, () =>
        namesIn(archive)
          .filter((entry) => entry.isFile())
          .map(({ name }) => name),
      ),
    }),
    heartbeats: () => monitor.received.length,
    events: () => receiver.received.map(({ body }) => JSON.parse(body)),
    listed: async () => (await harness.expunge(['schedule', 'list'])).stdout,
    state: () => harness.redis.hget(keys.schedule(harness.target.fp, 'nightly'), 'state'),
  };
}

function existing(folder: string, read: () => string[]): string[] {
  return readdirSync(join(folder, '..')).includes('done') ? read() : [];
}

describe.concurrent('a run of a schedule that found none of its ids', () => {
  /** @invariant one-conclusion */
  test('is not taken for one that went well: its file stays, no heartbeat is called, and the schedule is paused', async ({
    expect,
    onTestFinished,
  }) => {
    const inbox = await openInbox(onTestFinished);
    const run = await inbox.takes(gone);
    expect(run.counts).toMatchObject({ deleted: 0, unknown: 3 });
    const words = `its run ${run.id} is completed, but nothing shows that any of its ids was there`;
    const types = await until('the pause is reported', () => {
      const all = inbox.events().map(({ type }) => type);
      return all.includes('schedule.paused') && all.includes('run.completed') && all;
    });
    expect(types.filter((type) => type === 'schedule.paused')).toHaveLength(1);
    const eventOf = (wanted: string) => inbox.events().find(({ type }) => type === wanted)!;
    expect(eventOf('schedule.paused').text).toContain(`is paused by its guard "none_there": ${words}`);
    expect(eventOf('schedule.paused').text).toContain('--expect-absent');
    expect(eventOf('run.completed').data).toMatchObject({ unknown: 3, exit: 3 });
    expect(eventOf('run.completed').text).toContain(
      'is completed, but nothing shows that any of its ids was there: 3 rows: 3 unknown',
    );
    expect(inbox.files()).toEqual({ left: ['list.txt'], archived: [] });
    expect(inbox.heartbeats()).toBe(0);
    const listed = await inbox.listed();
    expect(listed).toContain(`completed, but nothing shows that any of its ids was there (${run.id})`);
    expect(listed).toContain('If its ids may be gone: expunge schedule add nightly … --expect-absent --replace');
    expect(listed).toContain('Resume: expunge schedule resume nightly');
    expect(summaryIn(await inbox.harness.expunge(['status', run.id, '--json'])).exit).toBe(3);
  });
});

describe.concurrent('a run of a schedule went well, so that its file is archived and the heartbeat called, if', () => {
  test.for<[string, readonly string[], string[]]>([
    ['some of its ids were deleted, and those before them were absent', [...gone, ...present], ['--rate', '10/s']],
    ['none of its ids was there, and --expect-absent was given', gone, ['--expect-absent']],
  ])('%s', async ([, ids, flags], { expect, onTestFinished }) => {
    const inbox = await openInbox(onTestFinished, ...flags);
    const run = await inbox.takes(ids);
    await until('the heartbeat was called', () => inbox.heartbeats() > 0);
    await until('the file is archived', () => inbox.files().archived.length > 0);
    expect(inbox.files()).toEqual({ left: [], archived: ['list.txt'] });
    expect(await inbox.state()).toBe('active');
    expect(await inbox.listed()).toContain(`${run.counts.deleted > 0 ? `${run.counts.deleted} deleted` : '3 gone'}`);
    const find = () => inbox.events().find(({ type }) => type === 'run.completed');
    const { data } = await until('the end is reported', find);
    expect(data).toMatchObject({ exit: 0 });
  });
});
