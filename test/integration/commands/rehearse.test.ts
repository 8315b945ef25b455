import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { privatePlace } from '../../../src/redis/private/place.ts';
import { serverPid } from '../../../src/redis/private/server-process.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { type Done, until } from '../../support/processes.ts';

const ids = Array.from({ length: 150 }, (_, n) => `a-${n}`);
const soon = { EXPUNGE_RETRY_DELAYS: '1ms,1ms,1ms,1ms,1ms' };

/** A port that counts who connects. Its answer to everything is to hang up. */
async function countConnections(atEnd: AtEnd): Promise<{ port: number; readonly connections: number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => {}).destroy();
  }).listen(0, '127.0.0.1');
  atEnd(async () => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    get connections() {
      return connections;
    },
  };
}

/** What no rehearsal touches: a base URL, a Redis and a token endpoint that count connections, and a token command that leaves a file. */
async function openOutside(harness: Harness, atEnd: AtEnd) {
  const [api, redis] = [await countConnections(atEnd), await countConnections(atEnd)];
  const asked = join(harness.folder, 'asked-for-a-token');
  return {
    api,
    redis,
    asked,
    env: { EXPUNGE_TOKEN: '', EXPUNGE_ACCOUNT: '', REDIS_URL: `redis://127.0.0.1:${redis.port}` },
    args: ['--base-url', `http://127.0.0.1:${api.port}/eu`, '--token-command', `touch ${asked}; echo secret`],
  };
}

/** The folder of the only rehearsal. */
function rehearsalIn({ stateDir }: Harness): string {
  const [run, ...others] = readdirSync(join(stateDir, 'rehearsals'));
  expect(others).toEqual([]);
  return join(stateDir, 'rehearsals', run!);
}

function linesOf(path: string): string[] {
  return readFileSync(path, 'utf8').trimEnd().split('\n');
}

/** A row of a report without what differs each time: when it was settled, and the id that the sandbox gave its request. */
function comparable(line: string): string {
  return line
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/, 'TIME')
    .replace(/\[[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\]/, '[REQUEST]');
}

/** The list and the command that runs it: 150 ids, some of them twice, and rows that are rejected or protected. */
function writeList(harness: Harness): string[] {
  Object.assign(harness.env, soon);
  harness.file('keep.txt', 'a-7\na-8\n');
  const rows = [...ids.slice(0, 20), 'a/b', 'a-3', '', ...ids.slice(20), 'a-4'];
  harness.file('old.csv', `id,note\n${rows.map((id) => `${id},"a, ""b"""`).join('\n')}\n`);
  return ['run', 'old.csv', '--resource', 'annotations', '--protect', 'keep.txt', '--yes', '--json'];
}

describe('a rehearsal', () => {
  test.each([
    ['completes', 'status-403=0.05,status-503=0.1,status-409=0.02,reset-executed=0.05,body-204=0.02', [], true],
    ['is stopped by its canary', 'status-403=0.5', ['--canary', '10,100'], true],
    ['is stopped by --max-deletes', 'status-503=0.1', ['--max-deletes', '40', '--partial'], true],
    ['is stopped by --max-failures', 'status-403=0.2', ['--max-failures', '5', '--expect', '403'], false],
    ['is stopped by a rule of expunge', 'html-200=0.05', ['--expect-absent'], false],
    ['is stopped by a status', 'status-403=0.15,status-409=0.01', ['--on-status', '409=halt'], false],
  ])('%s as a run against a sandbox with the same faults does', async (_, faults, brakes, isExact) => {
    const atEnd: (() => Promise<void>)[] = [];
    const harness = await openHarness((task) => atEnd.push(task));
    try {
      const command = [...writeList(harness), ...brakes];
      const sandboxFlags = ['--faults', faults];
      const objects = harness.file('objects.csv', `${ids.map((id) => `annotations,${id}`).join('\n')}\n`);
      const sandbox = harness.start(['sandbox', '--objects', objects, ...sandboxFlags, '--json']);
      await until('the sandbox listens', () => sandbox.stdout.includes('\n'));
      const { url, token } = JSON.parse(sandbox.stdout);
      const real = await harness.expunge([...command, '--base-url', url], { env: { EXPUNGE_TOKEN: token } });
      const { run: id } = summaryIn(real);
      await harness.expunge(['report', id, '--output', 'real.csv']);
      const outside = { EXPUNGE_TOKEN: '', REDIS_URL: '', EXPUNGE_BASE_URL: 'https://api.example.invalid' };
      const rehearsed = await harness.expunge([...command, '--rehearse', ...sandboxFlags], { env: outside });

      const [header, ...rows] = linesOf(join(harness.folder, 'real.csv'));
      const [rehearsedHeader, ...rehearsedRows] = linesOf(join(rehearsalIn(harness), 'outcomes.csv'));
      expect(rehearsedHeader).toBe(`rehearsal,${header}`);
      const isCompared = (_: string, n: number) => isExact || ![rows[n], rehearsedRows[n]].some(isPending);
      const compared = rows.filter(isCompared).map((row) => `REHEARSAL,${comparable(row)}`);
      expect(rehearsedRows.filter(isCompared).map(comparable)).toEqual(compared);
      expect([rows.length, rehearsedRows.length, compared.length > 15]).toEqual([154, 154, true]);
      expect(factsOf(rehearsed, isExact)).toEqual(factsOf(real, isExact));
      if (brakes.length > 0) expect(factsOf(real, isExact)).toMatchObject({ code: 4, state: 'halted' });
      expect(summaryIn(rehearsed)).toMatchObject({ rehearsal: true });
      expect(summaryIn(real)).not.toHaveProperty('rehearsal');
    } finally {
      for (const task of atEnd) await task();
    }
  });

  test('with other faults has other outcomes: the test above compares something', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const command = [...writeList(harness), '--rehearse', '--faults'];
    const counts = [];
    for (const faults of ['status-403=0.05', 'status-403=0.06'])
      counts.push(factsOf(await harness.expunge([...command, faults], { env: { REDIS_URL: '' } })));
    expect(counts[0]).not.toEqual(counts[1]);
  });

  test('connects neither to the base URL nor to the Redis of the user, and asks for no token', async ({
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished);
    const outside = await openOutside(harness, onTestFinished);
    const command = ['run', harness.list(ids), '--resource', 'views', '--yes', ...outside.args];
    const { code, stderr } = await harness.expunge([...command, '--rehearse'], { env: outside.env });
    expect([code, stderr]).toEqual([0, expect.stringContaining('deleted           150')]);
    expect([outside.api.connections, outside.redis.connections, existsSync(outside.asked)]).toEqual([0, 0, false]);
    expect(readdirSync(harness.stateDir)).toEqual(['rehearsals']);

    // The same command without --rehearse does all of that.
    const real = harness.start(command, { ...outside.env, REDIS_URL: harness.env.REDIS_URL });
    await until('the real run connects', () => outside.api.connections > 0);
    expect(existsSync(outside.asked)).toBe(true);
    real.signal('SIGINT');
    await real.ended;
    const lost = await harness.expunge(command, { env: outside.env });
    expect([lost.code, outside.redis.connections > 0]).toEqual([6, true]);
  });

  test('needs a base URL that no name server knows, no token and no Redis, and posts no event', async ({
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished);
    const receiver = await countConnections(onTestFinished);
    const args = [harness.list(ids), '--resource', 'views', '--base-url', 'https://api.example.invalid'];
    const unread = ['--token-file', 'no-such-file', '--notify', `http://127.0.0.1:${receiver.port}`, '--server'];
    const { code, stderr } = await harness.run([...args, ...unread, 'https://expunge.example.invalid', '--rehearse'], {
      env: { EXPUNGE_TOKEN: '', REDIS_URL: '' },
    });
    expect([code, stderr]).toEqual([0, expect.stringContaining('REHEARSAL of https://api.example.invalid')]);
    expect(receiver.connections).toBe(0);
    expect(harness.sandbox.counts.requests).toBe(0);
  });

  test('is marked on every page and row, and leaves nothing but its report', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const command = [...writeList(harness), '--rehearse', '--faults', 'status-403=0.1', '--rate', '200/s'];
    const before = temporary();
    const done = await harness.expunge(command, { env: { REDIS_URL: '', NO_COLOR: '1' } });
    const folder = rehearsalIn(harness);
    expect(readdirSync(folder).sort()).toEqual(
      ['audit.ndjson', 'failures.csv', 'kept-until', 'outcomes.csv', 'report.html'].sort(),
    );
    for (const name of ['outcomes.csv', 'failures.csv']) {
      const [, ...rows] = linesOf(join(folder, name));
      expect(rows.length).toBeGreaterThan(10);
      expect(rows.filter((row) => !row.startsWith('REHEARSAL,'))).toEqual([]);
    }
    const page = readFileSync(join(folder, 'report.html'), 'utf8');
    expect(page).toContain('<title>REHEARSAL: Run ');
    expect(page).toContain(`<p class="rehearsal"><b>REHEARSAL</b> of ${harness.sandbox.url}: `);
    expect(page).toContain('@media print{.rehearsal{position:fixed');
    const json = [...linesOf(join(folder, 'audit.ndjson')), ...done.stdout.trimEnd().split('\n')];
    expect(json.filter((line) => JSON.parse(line).rehearsal !== true)).toEqual([]);
    const [first, second] = done.stderr.split('\n');
    expect([first, second].map((line) => line!.split(' ')[0])).toEqual(['REHEARSAL', 'REHEARSAL']);
    expect(done.stderr).toContain(`REHEARSAL · Run ${summaryIn(done).run} completed`);
    expect(done.stderr).toMatch(/Forecast of the run: at least 0.7 s at the 200\/s of --rate/);
    expect(done.stderr).not.toContain('expunge retry');
    expect(temporary()).toEqual(before);
    expect(readdirSync(harness.stateDir).sort()).toEqual(['rehearsals', 'rejects']);
    expect(await harness.runs()).toEqual([]);
  });

  test('is no evidence: no command knows its id, and it has no manifest', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const done = await harness.run([harness.list(ids), '--resource', 'views', '--rehearse', '--json']);
    const { run } = summaryIn(done);
    for (const args of [
      ['retry', run, '--yes'],
      ['report', run, '--manifest', 'manifest.json'],
      ['verify', run, '--sample', '1', '--yes'],
      ['status', run],
      ['resume', run],
    ]) {
      const { code, stderr } = await harness.expunge(args);
      expect([args[0], code, stderr]).toEqual([args[0], 2, expect.stringContaining(`no run is called "${run}"`)]);
    }
    expect(harness.sandbox.counts.requests).toBe(0);
  });

  test('ends at a signal, with a report of what was done, and leaves nothing', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const before = temporary();
    const running = harness.start(['run', harness.list(ids), '--resource', 'views', '--rehearse', '--rate', '10/s'], {
      REDIS_URL: '',
    });
    await until('it deletes', () => running.stderr.includes('REHEARSAL 2'), 30_000); // a line of its progress
    running.signal('SIGINT');
    const { code } = await running.ended;
    expect([code, running.stderr]).toEqual([130, expect.stringContaining('A rehearsal cannot be resumed.')]);
    expect(linesOf(join(rehearsalIn(harness), 'outcomes.csv'))).toHaveLength(151);
    expect(temporary()).toEqual(before);
  });

  test('ends at a signal while it reads its list, and leaves nothing, not even a Redis', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const running = harness.spawn(['run', '-', '--resource', 'views', '--rehearse'], {}, new PassThrough());
    const owned = () => temporary(running.pid);
    await until('it reads', () => owned().length > 0);
    running.signal('SIGINT');
    expect(await running.ended).toMatchObject({ code: 130 });
    expect(owned()).toEqual([]);
  });

  test('removes what a killed rehearsal left, with its Redis', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const slow = ['run', harness.list(ids), '--resource', 'views', '--rehearse', '--rate', '5/s'];
    const killed = harness.spawn(slow, { REDIS_URL: '' });
    const [left] = await until('its Redis runs', () => {
      const folders = temporary(killed.pid).map((name) => privatePlace(join(tmpdir(), name)));
      return folders.length > 0 && serverPid(folders[0]!) !== null ? folders : null;
    });
    const redis = serverPid(left!)!;
    killed.signal('SIGKILL');
    await killed.ended;
    expect(commandOf(redis)).toContain('redis-server');
    await harness.run([harness.list(['a-1']), '--resource', 'views', '--rehearse'], { env: { REDIS_URL: '' } });
    expect([temporary(killed.pid), commandOf(redis)]).toEqual([[], '']);
  });

  test('does not wait for a window, a grace period or a start, and forecasts them', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const hour = (new Date().getUTCHours() + 12) % 24;
    const closed = `Mon-Sun ${String(hour).padStart(2, '0')}:00-${String(hour).padStart(2, '0')}:30 UTC`;
    const waits = ['--window', closed, '--grace', '1h', '--start-at', isoIn(3_600_000)];
    const command = [harness.list(ids), '--resource', 'views', '--rate', '1000/s', '--rehearse', ...waits];
    const { code, stderr } = await harness.run(command, { env: { REDIS_URL: '' } });
    expect([code, stderr]).toEqual([0, expect.stringMatching(/Forecast of the run: .*ends \w{3} \d/)]);
  });

  test('is refused where the run would be', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const list = harness.list(ids);
    harness.file('config.json', JSON.stringify({ allowedTargets: ['https://*.example.com'] }));
    const refusals: [string[], number, string][] = [
      [['--max-deletes', '10'], 2, '150 ids'],
      [['--expect-count', '10'], 4, '150'],
      [['--confirm', '10'], 2, '--confirm 10: expected 150'],
      [['--config', 'config.json'], 2, 'is not among the allowed targets'],
      [['--faults', 'status-99=1'], 2, '--faults: "status-99" is not a fault'],
      [['--state-dir', harness.file('a-file', '')], 2, 'it is a file'],
      [['--dry-run'], 2, '--rehearse and --dry-run exclude each other'],
      [['--detach'], 2, 'omit --detach'],
      [['--server', 'http://127.0.0.1:9', '--detach'], 2, 'omit --detach'],
    ];
    for (const [flags, exit, words] of refusals) {
      const args = [list, '--resource', 'views', '--rehearse', '--yes', ...flags].filter(
        (flag) => flag !== '--yes' || !flags.includes('--confirm'),
      );
      const { code, stderr } = await harness.run(args, { env: { REDIS_URL: '' } });
      expect([flags, code, stderr]).toEqual([flags, exit, expect.stringContaining(words)]);
    }
    expect(existsSync(join(harness.stateDir, 'rehearsals'))).toBe(false);
  });

  test('is of run only: other commands refuse it in words, and run refuses --faults without it', async ({
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished);
    const list = harness.list(ids);
    for (const args of [
      ['retry', 'x'],
      ['apply', 'x'],
      ['plan', list, '--resource', 'views'],
      ['schedule', 'add', 'nightly', list],
    ]) {
      const { code, stderr } = await harness.expunge([...args, '--rehearse']);
      expect([args[0], code, stderr]).toEqual([
        args[0],
        2,
        expect.stringContaining('no such option: --rehearse. Only the command run rehearses a list'),
      ]);
    }
    const { code, stderr } = await harness.run([list, '--resource', 'views', '--yes', '--faults', 'status-503=0.1']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--faults needs --rehearse')]);
    expect(harness.sandbox.counts.requests).toBe(0);
  });
});

function isoIn(ms: number): string {
  return new Date(Date.now() + ms).toISOString();
}

/** Folders of rehearsals in the folder for temporary files. */
function temporary(pid = process.pid): string[] {
  const named = new RegExp(`^expunge-rehearsal-.*-${pid}-[0-9a-f]+$`);
  return readdirSync(tmpdir()).filter((name) => named.test(name));
}

/** What a process runs; '' once it has ended. */
function commandOf(pid: number): string {
  return spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
    .stdout.replace(/.*<defunct>/, '')
    .trim();
}

function isPending(row: string | undefined): boolean {
  return row?.includes(',pending,') === true;
}

/**
 * What a run came to, without its id and its times. A halt that comes while requests are in flight is not `isExact`: how many ids were settled by
 * then depends on the moment, so numbers are left out.
 */
function factsOf(done: Done, isExact = true): Record<string, unknown> {
  const {
    state,
    reason,
    exit,
    rows,
    rejected,
    duplicate,
    protected: kept,
    standing,
    ...more
  } = summaryIn(done) as unknown as Record<string, unknown>;
  const { text, why } = (standing ?? {}) as Record<string, unknown>;
  const withoutNumbers = (words: unknown) => comparable(String(words)).replaceAll(/\d+/g, isExact ? '$&' : 'N');
  const same = { code: done.code, state, exit, rows, rejected, duplicate, kept, why };
  const texts = [withoutNumbers(reason), withoutNumbers(text)];
  if (!isExact) return { ...same, texts };
  const { deleted, absent, gone_unconfirmed, failed, unknown, pending, attempts, answers_with_body } = more;
  return { ...same, texts, deleted, absent, gone_unconfirmed, failed, unknown, pending, attempts, answers_with_body };
}
