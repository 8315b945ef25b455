import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
} from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { readSources } from '../../../src/config/list-source.ts';
import { keys } from '../../../src/redis/keys.ts';
import { archiveFiles } from '../../../src/schedule/archive.ts';
import { dryRun, runNow } from '../../../src/schedule/follow-run.ts';
import type { ReadFiles } from '../../../src/schedule/schedule.ts';
import { until } from '../../support/processes.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

const one = start + minute;

type AtEnd = Parameters<typeof openScheduleHarness>[0];

/** A schedule whose lists lie in a folder `in` and go to `done`. `whileWaiting` happens in the settling time. */
async function openInbox(atEnd: AtEnd, whileWaiting: (harness: ScheduleHarness) => void = () => {}) {
  const harness = await openScheduleHarness(atEnd);
  mkdirSync(join(harness.folder, 'in'));
  await harness.add();
  const archive = join(harness.folder, 'done');
  const sources = readSources({ expired: { glob: join(harness.folder, 'in', '*.txt'), archive } });
  const waits: number[] = [];
  const wait = async (ms: number) => {
    waits.push(ms);
    whileWaiting(harness);
  };
  return {
    ...harness,
    harness,
    archive,
    waits,
    sources,
    wait,
    ring: (time: number) => harness.at(time, { sources, wait }),
  };
}

describe.concurrent('files', () => {
  test('are one list, in the order of their names', async ({ expect, onTestFinished }) => {
    const { file, ring, runs, folder, waits } = await openInbox(onTestFinished);
    file('in/b.txt', 'b-1\nb-2\n');
    file('in/a.txt', 'a-1\n');
    file('in/c.csv', 'not,meant\n');
    await ring(one);
    expect((await runs()).map(({ files, rows }) => [files, rows])).toEqual([
      [[join(folder, 'in/a.txt'), join(folder, 'in/b.txt')], 3],
    ]);
    expect(waits).toEqual([5_000]);
  });

  test.for<[string, (path: string) => void]>([
    ['grow', (path) => appendFileSync(path, 'x\n')],
    ['are written over', (path) => utimesSync(path, 1, 1)],
    ['vanish', (path) => rmSync(path)],
  ])('that %s meanwhile are left for the next occurrence', async ([, change], { expect, onTestFinished }) => {
    const path = (harness: ScheduleHarness) => join(harness.folder, 'in/half.txt');
    const { file, ring, runs } = await openInbox(onTestFinished, (harness) => change(path(harness)));
    file('in/half.txt', 'h-1\n');
    file('in/whole.txt', 'w-1\nw-2\n');
    await ring(one);
    expect((await runs()).map(({ rows }) => rows)).toEqual([2]);
  });

  test('that come meanwhile are left, and if there is no other nothing starts', async ({ expect, onTestFinished }) => {
    const { file, ring, runs, harness } = await openInbox(onTestFinished, ({ folder }) =>
      appendFileSync(join(folder, 'in/half.txt'), 'x\n'),
    );
    file('in/half.txt', 'h-1\n');
    await ring(one);
    expect(await runs()).toEqual([]);
    const reason = expect.stringMatching(/^1 file is still being written, no finished one is there \(/);
    expect(await harness.history()).toMatchObject([{ outcome: 'empty', reason }]);
  });

  test('that are all put away leave nothing to do, which nobody is warned of', async ({ expect, onTestFinished }) => {
    const { ring, runs, harness, sources, wait } = await openInbox(onTestFinished);
    await ring(one);
    await ring(one + minute);
    const reason = expect.stringMatching(/^no file is there \(.*in\/\*\.txt\)$/);
    expect(await harness.history()).toMatchObject([{ outcome: 'empty', occurrences: 2, reason }]);
    expect((await harness.schedule()).state).toBe('active');
    expect([await runs(), harness.told]).toEqual([[], []]);
    const work = { ...harness.work, sources, wait };
    expect(await runNow(work, 'nightly', new AbortController().signal)).toEqual({ outcome: 'empty', reason });
    expect(await dryRun(work, 'nightly', new AbortController().signal)).toMatchObject({ nothing: reason });
  });

  test('are missed where their folder is gone, or where none is ever put away', async ({ expect, onTestFinished }) => {
    const { ring, harness, folder } = await openInbox(onTestFinished);
    rmSync(join(folder, 'in'), { recursive: true });
    await ring(one);
    expect((await harness.history())[0]).toMatchObject({
      outcome: 'failed',
      reason: expect.stringMatching(/no folder/),
    });
    const sources = readSources({ expired: { glob: join(folder, '*.csv') } });
    await harness.at(one + minute, { sources });
    const reason = expect.stringMatching(/^source expired: no file is there/);
    expect((await harness.history())[0]).toMatchObject({ outcome: 'failed', reason });
    expect(harness.told.filter((line) => line.startsWith('no run was made for an occurrence'))).toHaveLength(2);
  });

  test('go to the archive once their run has ended well', async ({ expect, onTestFinished }) => {
    const { file, ring, harness, archive, folder } = await openInbox(onTestFinished);
    file('in/a.txt', 'a-1\n');
    await ring(one);
    const { lastRun } = await harness.schedule();
    file('in/later.txt', 'l-1\n');
    await ring(one + 1_000);
    expect(readdirSync(join(folder, 'in'))).toEqual(['a.txt', 'later.txt']);
    await harness.finish(lastRun);
    await ring(one + 2_000);
    expect(readdirSync(join(folder, 'in'))).toEqual(['later.txt']);
    expect(readFileSync(join(archive, lastRun, 'a.txt'), 'utf8')).toBe('a-1\n');
    await ring(one + minute);
    expect((await harness.runs()).map(({ rows }) => rows)).toEqual([1, 1]);
  });

  test('are left for the machine that has them', async ({ expect, onTestFinished }) => {
    const { file, ring, harness, folder, archive } = await openInbox(onTestFinished);
    const path = file('in/a.txt', 'a-1\n');
    await ring(one);
    const { lastRun } = await harness.schedule();
    await harness.finish(lastRun);
    renameSync(path, join(folder, 'a.txt')); // as another machine sees it
    await ring(one + 1_000);
    expect(await harness.schedule()).toMatchObject({ lastState: 'completed', toArchive: { run: lastRun } });
    renameSync(join(folder, 'a.txt'), path);
    await ring(one + 2_000);
    expect(readdirSync(join(archive, lastRun))).toEqual(['a.txt']);
    expect((await harness.schedule()).toArchive).toBeNull();
  });

  test.for<[string, (read: ReadFiles, other: string) => ReadFiles]>([
    ['outside the archive', (read) => ({ ...read, run: '../elsewhere' })],
    ['that the source does not match', ({ run, files }, path) => ({ run, files: [...files, { ...files[0]!, path }] })],
  ])('%s move nowhere, whatever Redis says', async ([, change], { expect, onTestFinished }) => {
    const { file, ring, harness, archive } = await openInbox(onTestFinished);
    const [path, other] = [file('in/a.txt', 'a-1\n'), file('other.txt', 'a-1\n')];
    for (const written of [path, other]) utimesSync(written, 1, 1);
    await ring(one);
    const { lastRun, toArchive } = await harness.schedule();
    const name = keys.schedule(harness.target.fp, 'nightly');
    await harness.redis.hset(name, 'toArchive', JSON.stringify(change(toArchive!, other)));
    await harness.finish(lastRun);
    await ring(one + 1_000);
    expect((await harness.schedule()).toArchive).toBeNull();
    expect(existsSync(join(archive, '../elsewhere'))).toBe(false);
    expect(existsSync(other)).toBe(true);
  });

  test('stay where the run left ids', async ({ expect, onTestFinished }) => {
    const { file, ring, harness, folder } = await openInbox(onTestFinished);
    file('in/a.txt', 'a-1\n');
    await ring(one);
    const { lastRun } = await harness.schedule();
    await harness.finish(lastRun, { failed: 1 });
    await ring(one + 2_000);
    expect(readdirSync(join(folder, 'in'))).toEqual(['a.txt']);
    expect((await harness.history())[0]!.ended).toMatchObject({ state: 'completed', left: 1 });
  });

  test('that changed since they were read are not put away; those of one name are told apart', async ({
    expect,
    onTestFinished,
  }) => {
    const { file, folder, archive } = await openInbox(onTestFinished);
    mkdirSync(join(folder, 'more'));
    const paths = [file('in/a.txt', 'a-1\n'), file('more/a.txt', 'a-22\n'), file('in/b.txt', 'b-1\n')];
    const now = new Date();
    for (const path of paths) utimesSync(path, now, now);
    const files = paths.map((path, n) => ({ path, size: n === 1 ? 5 : 4, mtimeMs: now.getTime() }));
    appendFileSync(paths[2]!, 'b-2\n');
    const { moved, left } = await archiveFiles({ folder: archive, known: new Set(paths) }, { run: 'r1', files });
    expect(left).toEqual([paths[2]]);
    expect(moved).toEqual([join(archive, 'r1/1-a.txt'), join(archive, 'r1/2-a.txt')]);
    expect(readFileSync(moved[1]!, 'utf8')).toBe('a-22\n');
  });
});

describe.concurrent('a command', () => {
  const withCommand = (harness: ScheduleHarness, command: string[], env: NodeJS.ProcessEnv = {}) =>
    harness.at(one, { sources: readSources({ expired: { command } }), env: { PATH: process.env.PATH, ...env } });

  test('gives its output as the list, without a shell that reads its arguments', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    await withCommand(harness, ['printf', '%s\\n', '$HOME', 'b;c', '$(id)']);
    const [run] = await harness.runs();
    expect(run).toMatchObject({ rows: 3, ids: 2, files: ['expired (command printf)'] });
  });

  test('does not see our secrets, and what it says on stderr stands in the log only', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    const ours = ['REDIS_URL', 'EXPUNGE_TOKEN', 'EXPUNGE_CLIENT_SECRET', 'EXPUNGE_TOKEN_COMMAND', 'EXPUNGE_PROXY'];
    const env = { ...Object.fromEntries(ours.map((name) => [name, 'geheim'])), PGHOST: 'db' };
    await withCommand(harness, ['sh', '-c', 'env | grep geheim >&2; echo "$PGHOST" >&2; exit 4'], env);
    expect(harness.told.join('\n')).toContain('"reason":"db"');
    expect(harness.told.join('\n')).not.toContain('geheim');
    const [entry] = await harness.history();
    expect(entry!.reason).toBe('source expired: the command sh ended with 4');
  });

  test('that leaves something behind which holds its output open gives no list, and says why at once', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    const pid = join(harness.folder, 'pid');
    await withCommand(harness, ['sh', '-c', `seq 1 50; setsid sleep 60 & echo $! > ${pid}`]);
    process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL'); // it lives: it is none of ours to end
    const reason = expect.stringMatching(/the command sh has ended, but a process that it left behind may still print/);
    expect([await harness.runs(), await harness.history()]).toMatchObject([[], [{ outcome: 'failed', reason }]]);
  });

  test('that leaves something behind with another output gives its list', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    const pid = join(harness.folder, 'pid');
    await withCommand(harness, ['sh', '-c', `yes a | head -n 50000; setsid sleep 60 > /dev/null & echo $! > ${pid}`]);
    process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL');
    expect(await harness.runs()).toMatchObject([{ rows: 50_000 }]);
  });

  test('is killed with all it started when it takes too long, also where that keeps its output open', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    const marker = `7${process.pid}${Date.now() % 100_000}`;
    const command = ['sh', '-c', `echo a; sleep ${marker} & setsid sleep 3 & wait`];
    const sources = readSources({ expired: { command, timeout: '300ms' } });
    await harness.at(one, { sources });
    expect(await harness.history()).toMatchObject([
      { outcome: 'failed', reason: expect.stringMatching(/took longer than 0.3 s/) },
    ]);
    const isGone = () => !execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes(`sleep ${marker}`);
    await until('nothing of it is left', isGone);
  });
});

/** Serves lists; closed with the test. */
async function serve(atEnd: AtEnd, answer: (path: string, response: ServerResponse) => void): Promise<string> {
  const server: Server = createServer((request, response) => answer(request.url ?? '', response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe.concurrent('a URL', () => {
  test('gives the list of a 200, and its query is nowhere to be seen', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    const paths: string[] = [];
    const url = await serve(onTestFinished, (path, response) => {
      paths.push(path);
      response.end(`id\n${someIds('u', 7).join('\n')}\n`);
    });
    await harness.at(one, { sources: readSources({ expired: { url: `${url}/expired.csv?signature=geheim` } }) });
    expect(paths).toEqual(['/expired.csv?signature=geheim']);
    const [run] = await harness.runs();
    expect(run).toMatchObject({ rows: 7, files: [`${url}/expired.csv`] });
    expect(harness.told.join('\n')).not.toContain('geheim');
  });

  test.for<[string, (response: ServerResponse) => void, RegExp]>([
    ['answers 404', (response) => response.writeHead(404).end('a\nb\n'), /answered 404; only 200 is a list/],
    ['answers 204', (response) => response.writeHead(204).end(), /answered 204/],
    ['redirects', (response) => response.writeHead(302, { location: '/other.txt' }).end(), /answered 302/],
    [
      'is cut off',
      (response) => {
        response.writeHead(200, { 'content-length': 100 }).write('a\nb\n');
        setTimeout(() => response.destroy(), 50);
      },
      /gave no complete list/,
    ],
    [
      'does not tell where its answer ends',
      (response) => void response.socket!.end('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\na\nb\n'),
      /does not give the length of its answer/,
    ],
    [
      'ends within a line, in chunks',
      (response) => void response.writeHead(200).write('a\nb', () => response.end()),
      /list\.txt:2: the last line has no newline/,
    ],
    [
      'ends within a line, of the length that it told',
      (response) => response.end('a\nb'),
      /:2: the last line has no newline/,
    ],
    ['never answers', () => {}, /took longer than 0.3 s/],
    ['never ends', (response) => void response.writeHead(200).write('a\nb\n'), /took longer than 0.3 s/],
  ])('that %s starts nothing', async ([, answer, words], { expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    const url = await serve(onTestFinished, (_, response) => answer(response));
    const timeout = words.source.includes('took longer') ? '300ms' : '20s'; // a busy machine is no answer that comes late
    await harness.at(one, {
      sources: readSources({ expired: { url: `${url}/list.txt?signature=geheim`, timeout } }),
    });
    expect(await harness.runs()).toEqual([]);
    const [entry] = await harness.history();
    expect(entry).toMatchObject({ outcome: 'failed', reason: expect.stringMatching(words) });
    expect(entry!.reason).not.toContain('geheim');
  });
});
