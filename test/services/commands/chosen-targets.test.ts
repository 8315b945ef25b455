import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { openApi } from '../../support/api.ts';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const ids = makeIds('c', 5);
const elsewhere = { EXPUNGE_ALLOWED_TARGETS: 'api.example.com,*.staging.example.com' };
const here = { EXPUNGE_ALLOWED_TARGETS: 'localhost,127.0.0.1' };
const guarded = { EXPUNGE_PROTECTED_TARGETS: '*prod*,localhost,127.0.0.1' };

const scheduleLine = [
  'schedule',
  'add',
  'n',
  '--cron',
  '0 3 * * *',
  '--from',
  'expired',
  '--resource',
  'annotations',
  '--max-deletes',
  '9',
];

async function openList() {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const list = ['list.txt', '--resource', 'annotations'];
  harness.list(ids);
  harness.file('expunge.config.json', JSON.stringify({ sources: { expired: { glob: 'list.txt' } } }));
  const host = new URL(harness.target.baseUrl).hostname;
  return { harness, list, host };
}

describe('a target that is not allowed', () => {
  test.each([
    ['run', ['run', 'list.txt', '--resource', 'annotations', '--yes']],
    ['run --detach', ['run', 'list.txt', '--resource', 'annotations', '--yes', '--detach']],
    ['run --dry-run', ['run', 'list.txt', '--resource', 'annotations', '--dry-run']],
    ['plan', ['plan', 'list.txt', '--resource', 'annotations']],
    ['worker', ['worker']],
    ['check', ['check', '--probe-id', 'c-0', '--resource', 'annotations']],
    ['schedule add', scheduleLine],
  ])('is refused by %s, which sends nothing', async (_, line) => {
    const { harness } = await openList();
    const { baseUrl } = harness.target;
    const done = await harness.expunge(line, { env: elsewhere });
    expect(done.code).not.toBe(0);
    expect(done.stdout + done.stderr).toContain(
      `${baseUrl} is not among the allowed targets (api.example.com, *.staging.example.com)`,
    );
    expect(harness.sandbox.seen).toEqual([]);
    expect(await harness.runs()).toEqual([]);
  });

  test('is refused by retry and apply, though its run and its plan were made while it was allowed', async () => {
    const { harness, list } = await openList();
    const plan = await harness.plan(list, { env: here });
    const applied = await harness.expunge(['apply', plan, '--yes'], { env: elsewhere });
    expect(applied).toMatchObject({ code: 2, stderr: expect.stringContaining('is not among the allowed targets') });
    expect(harness.sandbox.seen).toEqual([]);
    expect(await harness.expunge(['apply', plan, '--yes'], { env: here })).toMatchObject({ code: 0 });
    const { id } = await harness.onlyRun();
    const retried = await harness.expunge(['retry', id, '--only', 'failed', '--yes'], { env: elsewhere });
    expect(retried).toMatchObject({ code: 2, stderr: expect.stringContaining('is not among the allowed targets') });
    expect(harness.sandbox.seen).toHaveLength(ids.length);
  });

  test('is refused by a server, whatever the client allows', async () => {
    const api = await openApi(onTestFinished, { objects: annotations(ids), env: elsewhere });
    const { harness, redis, url, token } = api;
    await noteTarget(redis, harness.target, Date.now());
    harness.list(ids);
    const env = { EXPUNGE_SERVER: url, EXPUNGE_SERVER_TOKEN: await token('operate'), REDIS_URL: 'redis://127.0.0.1:1' };
    const done = await harness.expunge(['run', 'list.txt', '--resource', 'annotations', '--detach', '--yes'], { env });
    expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('is not among the allowed targets') });
    expect(await harness.runs()).toEqual([]);
  });

  test('gets no schedule from a server', async () => {
    const { harness, redis, call } = await openApi(onTestFinished, { objects: annotations(ids), env: elsewhere });
    await noteTarget(redis, harness.target, Date.now());
    const body = {
      target: harness.target.fp,
      name: 'n',
      cron: '0 3 * * *',
      from: 'expired',
      resource: 'annotations',
      max_deletes: 9,
    };
    const headers = { 'idempotency-key': 'a' };
    const refused = await call('operate', '/schedules', { method: 'POST', headers, body });
    expect(refused).toMatchObject({ status: 422 });
    expect(JSON.stringify(refused.body)).toContain('is not among the allowed targets');
  });
});

describe('a protected target', () => {
  test('gets nothing before its host name is given, though the number is confirmed', async () => {
    const { harness, list, host } = await openList();
    const refused = await harness.run([...list, '--yes'], { env: guarded });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`add --confirm-host ${host}`) });
    const wrong = await harness.run([...list, '--yes', '--confirm-host', 'api.example.com'], { env: guarded });
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('got "api.example.com"; nothing was sent'),
    });
    expect(harness.sandbox.seen).toEqual([]);
    expect(await harness.runs()).toEqual([]);
    expect(await harness.run([...list, '--yes', '--confirm-host', host], { env: guarded })).toMatchObject({ code: 0 });
    expect(harness.sandbox.remaining()).toBe(0);
  });

  test('gets nothing from check and verify before its host name is given', async () => {
    const { harness, list, host } = await openList();
    expect(await harness.run([...list, '--yes'])).toMatchObject({ code: 0 });
    const { id } = await harness.onlyRun();
    const sent = harness.sandbox.seen.length;
    const lines = [
      ['verify', id, '--sample', '2', '--yes'],
      ['check', '--semantics', '--resource', 'annotations', '--yes'],
      ['check', '--probe-id', 'c-0', '--resource', 'annotations'],
    ];
    for (const line of lines) {
      const { code, stdout, stderr } = await harness.expunge(line, { env: guarded });
      expect([code, stdout + stderr]).toEqual([2, expect.stringContaining(`add --confirm-host ${host}`)]);
      expect(await harness.expunge([...line, '--confirm-host', 'x'], { env: guarded })).toMatchObject({ code: 2 });
    }
    expect(harness.sandbox.seen).toHaveLength(sent);
    for (const [n, line] of lines.entries()) {
      await harness.expunge([...line, '--confirm-host', host], { env: guarded });
      expect(harness.sandbox.seen.length).toBeGreaterThan(sent + n);
    }
  });

  test('needs no host name where no pattern matches', async () => {
    const { harness, list } = await openList();
    const env = { EXPUNGE_PROTECTED_TARGETS: '*prod*' };
    expect(await harness.run([...list, '--yes'], { env })).toMatchObject({ code: 0 });
  });

  test('gets no schedule before its host name is given', async () => {
    const { harness, host } = await openList();
    const refused = await harness.expunge(scheduleLine, { env: guarded });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`add --confirm-host ${host}`) });
    expect((await harness.expunge(['schedule', 'list', '--json'])).stdout).toBe('');
    expect(await harness.expunge([...scheduleLine, '--confirm-host', host], { env: guarded })).toMatchObject({
      code: 0,
    });
  });

  test('has its host typed before a retry at a server that protects it', async () => {
    const { harness, url, token } = await openApi(onTestFinished, { objects: annotations([]), env: guarded });
    const host = new URL(harness.target.baseUrl).hostname;
    harness.list(ids);
    const line = ['list.txt', '--resource', 'annotations', '--expect-absent', '--yes'];
    expect(await harness.run(line)).toMatchObject({ code: 0 });
    const { id } = await harness.onlyRun();
    const env = { EXPUNGE_SERVER: url, EXPUNGE_SERVER_TOKEN: await token('operate'), REDIS_URL: 'redis://127.0.0.1:1' };
    const typed = [['Type its host name', `${host}\r`]] as const;
    const again = await harness.expunge(['retry', id, '--only', 'absent', '--detach', '--yes'], { env, typed });
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining(`${host} is a protected target`) });
  });

  test('is one for a client whose server does not protect it', async () => {
    const { harness, redis, url, token } = await openApi(onTestFinished, { objects: annotations(ids) });
    const host = new URL(harness.target.baseUrl).hostname;
    await noteTarget(redis, harness.target, Date.now());
    harness.list(ids);
    const server = { EXPUNGE_SERVER: url, EXPUNGE_SERVER_TOKEN: await token('operate') };
    const env = { ...server, REDIS_URL: 'redis://127.0.0.1:1', ...guarded };
    const line = ['run', 'list.txt', '--resource', 'annotations', '--detach', '--yes'];
    const wrong = await harness.expunge([...line, '--confirm-host', 'api.example.com'], { env });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('got "api.example.com"') });
    const stopped = await harness.expunge(line, { env, typed: [['Type its host name', '\r']] });
    expect(stopped.code).toBe(2);
    expect(await harness.runs()).toEqual([]);
    expect(await harness.expunge([...line, '--confirm-host', host], { env })).toMatchObject({ code: 0 });
  });

  test('is one for a server as well: for its API, its plans and commands with --server', async () => {
    const api = await openApi(onTestFinished, { objects: annotations(ids), env: guarded });
    const { harness, redis, url, token, call } = api;
    const host = new URL(harness.target.baseUrl).hostname;
    await noteTarget(redis, harness.target, Date.now());
    harness.list(ids);
    const env = { EXPUNGE_SERVER: url, EXPUNGE_SERVER_TOKEN: await token('operate'), REDIS_URL: 'redis://127.0.0.1:1' };
    const line = ['run', 'list.txt', '--resource', 'annotations', '--detach', '--yes'];
    const refused = await harness.expunge(line, { env });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`add --confirm-host ${host}`) });

    const query = new URLSearchParams({ target: harness.target.fp, resource: 'annotations' });
    const headers = { 'content-type': 'text/plain' };
    const { body: plan } = await call('operate', `/plans?${query}`, {
      method: 'POST',
      raw: `${ids.join('\n')}\n`,
      headers,
    });
    expect(plan).toMatchObject({ protected_host: host });
    const apply = (key: string, more: object) =>
      call('operate', `/plans/${plan.plan}/apply`, {
        method: 'POST',
        headers: { 'idempotency-key': key },
        body: { confirm: ids.length, ...more },
      });
    expect(await apply('a', {})).toMatchObject({ status: 422 });
    expect(await apply('b', { confirm_host: 'x' })).toMatchObject({ status: 422 });
    expect(await harness.runs()).toEqual([]);
    expect(await apply('c', { confirm_host: host })).toMatchObject({ status: 201 });
    const { id } = await harness.onlyRun();
    expect((await call('read', `/runs/${id}`)).body).toMatchObject({ protected_host: host });
  });
});
