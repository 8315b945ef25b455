import { existsSync, readdirSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { type Api, openApi, overServer } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { until } from '../../support/processes.ts';
import { relayRequests } from '../../support/relay.ts';

/** A server that knows the target, and what an operator needs who knows the server only. */
async function openWithTarget(count = 30) {
  const ids = makeIds('l', count);
  const api = await openApi(onTestFinished, { objects: annotations(ids) });
  const { harness, redis } = api;
  await noteTarget(redis, harness.target, Date.now());
  const env = {
    ...(await overServer(api)),
    EXPUNGE_TOKEN: '',
    EXPUNGE_STATE_DIR: `${harness.folder}/none`,
  };
  harness.file('old.csv', `id\n${ids.join('\n')}\n${ids[0]}\nnot ok\u0007\n`);
  return { ...api, ids, env };
}

const line = ['run', 'old.csv', '--resource', 'annotations', '--detach'];

function uploads({ harness }: Api): string[] {
  const folder = `${harness.stateDir}/uploads`;
  return existsSync(folder) ? readdirSync(folder) : [];
}

describe('run --detach with --server', () => {
  test('has a grace period or a start, and no flag undercuts the minimum of the target', async () => {
    const api = await openWithTarget();
    const { harness, env } = api;
    const graced = await harness.expunge([...line, '--yes', '--grace', '2h'], { env });
    expect(graced.stderr).toContain('Starts    2 h after it is accepted; it can be cancelled until then');
    const { id, startsAt, acceptedAt } = await harness.onlyRun();
    expect(startsAt - acceptedAt).toBe(7_200_000);
    expect((await harness.expunge(['status', id], { env })).stdout).toContain(
      'in its grace period, nothing is sent yet',
    );
    expect(await harness.expunge(['cancel', id, '--yes'], { env })).toMatchObject({ code: 0 });
    const retried = await harness.expunge(['retry', id, '--detach', '--yes', '--grace', '3h'], { env });
    expect(retried).toMatchObject({ code: 0 });
    const retry = (await harness.runs()).find(({ retryOf }) => retryOf === id)!;
    expect(retry.startsAt - retry.acceptedAt).toBe(10_800_000);
    await harness.expunge(['cancel', retry.id, '--yes'], { env });
    expect(await harness.expunge(['target', 'grace', '1h'], { env })).toMatchObject({ code: 0 });
    const startAt = new Date(Date.now() + 60_000).toISOString();
    const started = await harness.expunge([...line, '--yes', '--start-at', startAt], { env });
    expect(started.stderr).toContain('1 h after it is accepted, the minimum of this target');
    const runs = await harness.runs();
    const last = runs.find((run) => run.state === 'running')!;
    expect([last.startsAt - last.acceptedAt, last.startAt]).toEqual([3_600_000, Date.parse(startAt)]);
    expect(harness.sandbox.seen).toEqual([]);
  });

  test('sends a list that the workers delete, as it says and in the name of the token', async () => {
    const api = await openWithTarget();
    const { harness, env } = api;
    const more = ['--yes', '--rate', '500/s', '--canary', '5', '--reason', 'old', '--json'];
    const done = await harness.expunge([...line, ...more, '--max-duration', '2h'], { env });
    expect(done.code, done.stderr).toBe(0);
    const summary = JSON.parse(done.stdout);
    expect(summary).toMatchObject({
      type: 'summary',
      state: 'running',
      rows: 32,
      pending: 30,
      duplicate: 1,
      rejected: 1,
    });
    for (const words of [
      '32 rows → 30 annotations to delete',
      'at most 500/s',
      'after 5 ids',
      'token from its workers',
    ])
      expect(done.stderr).toContain(words);
    expect(done.stderr).toContain('after 2 h of deleting');
    expect(done.stderr).toContain(`Run ${summary.run} is left to the workers: 30 ids.`);
    expect(done.stderr).toContain('no worker of this target is alive');
    expect(uploads(api)).toEqual([]);
    await harness.worker();
    const run = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(run).toMatchObject({
      createdBy: 'test-operate',
      note: 'old',
      canaryOf: '5',
      maxActiveMs: 7_200_000,
    });
    expect([run.counts.deleted, harness.sandbox.remaining()]).toEqual([30, 0]);
    const report = await harness.expunge(['report', run.id, '--only', 'deleted'], { env });
    expect(report.stdout.trim().split('\n')).toHaveLength(31);
  });

  test('reads packed lines, tabs and another column', async () => {
    const { harness, ids, env } = await openWithTarget(3);
    const lists: [string, string | Buffer, string[]][] = [
      ['ids.txt.gz', gzipSync(ids.join('\n')), []],
      ['ids.tsv', `id\tname\n${ids.map((id) => `${id}\tx`).join('\n')}\n`, []],
      ['a list.csv', `n,x\n${ids.map((id) => `1,${id}`).join('\n')}\n`, ['--column', 'x']],
    ];
    for (const [name, content, more] of lists) {
      harness.file(name, content);
      const args = ['run', name, '--resource', 'annotations', '--detach', '--confirm', '999', ...more];
      const done = await harness.expunge(args, { env });
      expect([done.code, done.stderr], name).toEqual([2, expect.stringContaining('expected 3')]);
    }
  });

  test('does nothing, and keeps nothing on the server, unless the number that it shows is typed', async () => {
    const api = await openWithTarget();
    const { harness, env } = api;
    const wrong = await harness.expunge(line, {
      env,
      typed: [
        ['Type 30 to delete', '31\r'],
        ['2 tries are left', '31\r'],
        ['1 try is left', '31\r'],
      ],
    });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('not confirmed; nothing was sent') });
    expect(await harness.expunge(line, { env })).toMatchObject({ code: 2 });
    expect(await harness.expunge([...line, '--confirm', '29'], { env })).toMatchObject({ code: 2 });
    expect([uploads(api), await harness.runs()]).toEqual([[], []]);
    const right = await harness.expunge(line, { env, typed: ['Type 30 to delete', '30\r'] });
    expect(right.code, right.stderr).toBe(0);
    expect((await harness.onlyRun()).state).toBe('running');
  });

  test('refuses what a server does not have or decides itself, and nothing happens', async () => {
    const api = await openWithTarget();
    const { harness, env } = api;
    const refused: [more: string[], code: number, words: string][] = [
      [['--expect-count', '7'], 4, '7'],
      [['--protect', 'p.txt'], 2, '--protect'],
      [['old.csv'], 2, 'one list at a time'],
      [['--max-concurrency', '3'], 2, '--max-concurrency'],
      [['--keep', '365d'], 2, '--keep'],
    ];
    for (const [more, code, words] of refused) {
      const done = await harness.expunge([...line, '--yes', ...more], { env });
      expect(done, words).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(words) });
    }
    expect([await harness.runs(), uploads(api)]).toEqual([[], []]);
  });

  test('deletes nothing itself: without --detach it refuses, and a dry run asks no server', async () => {
    const { harness, env } = await openWithTarget();
    const [run, file, ...resource] = line.slice(0, 4) as [string, string, string, string];
    const foreground = await harness.expunge([run, file, ...resource, '--yes'], { env });
    expect(foreground).toMatchObject({ code: 2, stderr: expect.stringContaining('add --detach') });
    const away = { ...env, EXPUNGE_SERVER: 'http://127.0.0.1:1' };
    const dry = await harness.expunge([run, file, ...resource, '--dry-run'], { env: away });
    expect(dry).toMatchObject({ code: 3, stdout: expect.stringContaining('30 annotations to delete') });
    expect(await harness.runs()).toEqual([]);
  });

  test('names the unfinished run of the same list, and makes no second one, and keeps nothing on the server', async () => {
    const api = await openWithTarget();
    const { harness, env } = api;
    const first = await harness.expunge([...line, '--yes', '--json'], { env });
    const again = await harness.expunge([...line, '--yes', '--json'], { env });
    expect([first.code, again.code], again.stderr).toEqual([0, 4]);
    expect(again.stderr).toContain(JSON.parse(first.stdout).run);
    expect(await harness.runs()).toHaveLength(1);
    expect(uploads(api)).toEqual([]);
  });

  test('says which unfinished run is of another list of the same file, before it asks; a list from a pipe has none', async () => {
    const { harness, env, ids } = await openWithTarget();
    const first = await harness.expunge([...line, '--yes', '--json'], { env });
    const { run } = JSON.parse(first.stdout);
    harness.file('old.csv', `id\n${ids.slice(1).join('\n')}\n`);
    const edited = await harness.expunge(line, { env, typed: ['Type 29 to delete', '29\r'] });
    expect(edited.code, edited.stderr).toBe(0);
    const told = stripVTControlCharacters(edited.stderr).replace(/\s+/g, ' ');
    expect(told).toContain(`Overlaps run ${run} of old.csv has 30 ids left (running); the lists differ`);
    expect(told).toContain(`, alongside run ${run}`);
    for (const id of ids.slice(0, 2)) {
      const piped = ['run', '-', '--resource', 'annotations', '--detach', '--yes'];
      const done = await harness.expunge(piped, { env, input: `${id}\n` });
      expect([done.code, done.stderr]).toEqual([0, expect.not.stringContaining('Overlaps')]);
    }
    expect(await harness.runs()).toHaveLength(4);
  });

  test('makes one run of a plan, though the answer to its action is lost, and the action is still being done when it is repeated', async () => {
    const { harness, env, url } = await openWithTarget();
    const keys: unknown[] = [];
    const over = await relayRequests(onTestFinished, url, ({ asked, answer, forward }) => {
      if (!asked.url!.endsWith('/apply')) return forward(answer);
      const n = keys.push(asked.headers['idempotency-key']);
      if (n === 1) return forward(null);
      if (n === 3) return forward(answer);
      const problem = { type: 'about:blank', title: '', status: 409, detail: 'is being done', code: 'conflict' };
      answer.writeHead(409, { 'content-type': 'application/problem+json' });
      answer.end(JSON.stringify({ ...problem, seconds: 0 }));
    });
    const done = await harness.expunge([...line, '--yes'], { env: { ...env, EXPUNGE_SERVER: over } });
    expect(done.code, done.stderr).toBe(0);
    expect(keys).toEqual([expect.stringMatching(/^[\da-f-]{36}$/), keys[0], keys[0]]);
    expect(await harness.runs()).toHaveLength(1);
  });
});

describe('a run that is left to workers with --server', () => {
  test('is warned of where no worker is alive, though a command deletes another run of the target', async () => {
    const { harness, env } = await openWithTarget(4);
    harness.file('other.csv', `id\n${makeIds('f', 300).join('\n')}\n`);
    harness.start(['run', 'other.csv', '--resource', 'annotations', '--yes', '--rate', '1/s']);
    await until('it deletes', () => harness.sandbox.seen.length > 0);
    const leave = async (args: string[]) => {
      const done = await harness.expunge([...args, '--yes', '--json'], { env });
      expect(done, done.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(noWorker) });
      return JSON.parse(done.stdout).run as string;
    };
    const noWorker = 'warning: no worker of this target is alive; start one: expunge worker --base-url';
    const run = await leave(line);
    const resumed = await harness.expunge(['resume', run, '--detach'], { env });
    expect(resumed).toMatchObject({ code: 0, stderr: expect.stringContaining(noWorker) });
    await harness.expunge(['cancel', run, '--yes'], { env });
    await leave(['retry', run, '--detach']);
    const [foreground] = (await harness.runs()).filter(({ detached }) => !detached);
    await harness.expunge(['cancel', foreground!.id, '--yes']); // it would first send what it has marked
  });
});

describe('retry --detach with --server', () => {
  /** A run that was cancelled before anything was sent. */
  async function openWithCancelled() {
    const api = await openWithTarget(4);
    const { harness, env } = api;
    const done = await harness.expunge([...line, '--yes', '--json'], { env });
    const { run } = JSON.parse(done.stdout) as { run: string };
    await harness.expunge(['cancel', run, '--yes'], { env });
    return { ...api, run };
  }

  test('makes a run of what is left, once the number is typed, and the workers delete it', async () => {
    const { harness, env, run } = await openWithCancelled();
    const retry = (...more: string[]) => harness.expunge(['retry', run, '--detach', '--json', ...more], { env });
    expect(await retry('--confirm', '5')).toMatchObject({ code: 2, stderr: expect.stringContaining('expected 4') });
    expect(await harness.runs()).toHaveLength(1);
    const done = await retry('--confirm', '4', '--reason', 'after all');
    expect(done.code, done.stderr).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({ retry_of: run, pending: 4, state: 'running' });
    await harness.worker();
    const made = JSON.parse(done.stdout).run;
    await until(
      'it is completed',
      async () => (await harness.runs()).find(({ id }) => id === made)?.state === 'completed',
    );
    expect(harness.sandbox.remaining()).toBe(0);
    const nothing = await harness.expunge(['retry', made, '--detach', '--yes'], { env });
    expect(nothing).toMatchObject({ code: 0, stderr: expect.stringContaining('has nothing to retry') });
  });

  test('sends again what the API called gone, if that is named, and as many as were counted', async () => {
    const { harness, env } = await openWithTarget(4);
    harness.sandbox.faults = { 'status-410': 1 };
    const done = await harness.expunge([...line, '--yes', '--json', '--expect-absent'], { env });
    const { run } = JSON.parse(done.stdout) as { run: string };
    await harness.worker();
    const isOver = async () => (await harness.runs()).find(({ id }) => id === run)?.state === 'completed';
    await until('it is completed', isOver);
    const retry = (...more: string[]) => harness.expunge(['retry', run, '--detach', '--json', ...more], { env });
    expect((await retry('--yes')).stderr).toContain('has nothing to retry');
    expect((await retry('--only', 'absent', '--confirm', '3')).stderr).toContain('expected 4');
    const again = await retry('--only', 'absent', '--confirm', '4');
    expect(again.code, again.stderr).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ retry_of: run, rows: 4 });
  });

  test('says that the ids are left to the workers also where these are done with them at once', async () => {
    const { harness, env, url, run } = await openWithCancelled();
    await harness.worker();
    const isCompleted = async () => (await harness.runs()).some(({ state }) => state === 'completed');
    const over = await relayRequests(onTestFinished, url, async ({ asked, answer, forward }) => {
      const isOfRetry = asked.url!.endsWith('/record') && !asked.url!.includes(run);
      if (isOfRetry) await until('it is completed', isCompleted);
      forward(answer);
    });
    const line = ['retry', run, '--detach', '--yes'];
    const done = await harness.expunge(line, { env: { ...env, EXPUNGE_SERVER: over } });
    expect(done.code, done.stderr).toBe(0);
    expect(done.stderr).not.toContain('Nothing is sent');
    expect(done.stderr).toContain('is left to the workers');
    expect(harness.sandbox.remaining()).toBe(0);
    expect(await harness.expunge(line, { env })).toMatchObject({ code: 4, stdout: '' });
  });

  test('refuses what a server does not take', async () => {
    const { harness, env, run } = await openWithCancelled();
    const refused: [string[], number, string][] = [
      [['--detach', '--rate', '5/s'], 2, '--rate'],
      [['--detach', '--dry-run'], 2, '--dry-run'],
      [['--detach', '--yes', '--keep', '365d'], 2, '--keep'],
      [['--yes'], 2, 'add --detach'],
      [['--detach', '--yes', '--base-url', 'https://other.example.com'], 2, 'nothing was sent'],
    ];
    for (const [more, code, words] of refused)
      expect(await harness.expunge(['retry', run, ...more], { env })).toMatchObject({
        code,
        stdout: '',
        stderr: expect.stringContaining(words),
      });
    expect(await harness.runs()).toHaveLength(1);
  });
});
