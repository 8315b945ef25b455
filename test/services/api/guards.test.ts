import { connect } from 'node:net';
import { zstdCompressSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openApi } from '../../support/api.ts';
import { liveRun } from '../../support/live-run.ts';

const csv = { 'content-type': 'text/csv' };

async function openWithTarget(env: NodeJS.ProcessEnv = {}) {
  const api = await openApi(onTestFinished, { env });
  await noteTarget(api.redis, api.harness.target, Date.now());
  const plan = (list: string, more = '', headers = {}) =>
    api.call('operate', `/plans?target=${api.harness.target.fp}&resource=views${more}`, {
      method: 'POST',
      raw: list,
      headers: { ...csv, ...headers },
    });
  return { ...api, plan };
}

describe('a plan', () => {
  test('is never answered for another list, though both are as long and come with the same Idempotency-Key', async () => {
    const { plan } = await openWithTarget();
    const key = { 'idempotency-key': 'same' };
    const first = await plan('id\ng-000001\n', '', key);
    const second = await plan('id\ng-000002\n', '', key);
    expect(first.body.first.url).toContain('g-000001');
    expect(second.body.first?.url ?? second.status).not.toContain('g-000001');
    expect(second.body.plan).not.toBe(first.body.plan);
  });

  test('is applied with the brake that whoever applies it asks for, though it was made without', async () => {
    const { plan, call } = await openWithTarget();
    const { plan: id } = (await plan('id\ng-000003\n', '&expect_absent=true')).body;
    const body = { confirm: 1, expect_absent: 'false' };
    const made = await call('operate', `/plans/${id}/apply`, { method: 'POST', body });
    expect(made.status, made.text).toBe(201);
    expect((await call('read', `/runs/${made.body.run}`)).body.settings).toMatchObject({ expect_absent: false });
  });
});

describe('a plan with other rules', () => {
  test('deletes the ids that were shown, not as many others', async () => {
    const { plan, call, harness, redis } = await openWithTarget();
    const { plan: id } = (await plan('id\ng-000004\n')).body;
    await redis.hset(keys.planFiles(harness.target.fp, id), 'list.0', zstdCompressSync('id\ng-000005\n'));
    const body = { confirm: 1, rate: '5/s' };
    const refused = await call('operate', `/plans/${id}/apply`, { method: 'POST', body });
    expect(refused.body).toMatchObject({ status: 409, code: 'conflict' });
    expect((await call('read', '/runs')).body.items).toEqual([]);
  });
});

describe('resume', () => {
  test('lifts the brake on absent ids only where the action says so, whatever the server is set to', async () => {
    const { call, harness, redis } = await openWithTarget({ EXPUNGE_EXPECT_ABSENT: 'true' });
    const run = await liveRun(harness, 'g-000006');
    const act = (action: string, body = {}) => call('operate', `/runs/${run}/${action}`, { method: 'POST', body });
    const resume = async (body = {}) =>
      act('resume', { ...body, seen: (await call('read', `/runs/${run}`)).body.revision });
    const lifted = () => redis.hget(keys.run(run), 'expectAbsent');
    const before = await lifted();
    await act('pause');
    expect((await resume()).body).toMatchObject({ state: 'running' });
    expect(await lifted()).toBe(before);
    await act('pause');
    await resume({ expect_absent: true });
    expect(await lifted()).toBe('1');
  });
});

describe('a stream', () => {
  test('is not begun by a HEAD request, which nobody reads or ends', async () => {
    const { call } = await openApi(onTestFinished);
    const heads = await Promise.all(Array.from({ length: 101 }, () => call('read', '/events', { method: 'HEAD' })));
    expect(new Set(heads.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await call(null, '/events', { method: 'HEAD' })).status).toBe(401);
  });
});

/** What a server answers to these bytes until it closes the connection. */
async function answerTo(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(bytes);
  let answer = '';
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return answer;
}

describe.concurrent('a connection', () => {
  test.for([
    ['a login whose body does not come', 'POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nt'],
    ['a request whose header does not come', 'GET /healthz HTTP/1.1\r\nHost: 127'],
  ] as const)('is not kept by %s', { timeout: 60_000 }, async ([, bytes], { expect, onTestFinished }) => {
    const { url } = await openApi(onTestFinished);
    expect(await answerTo(url, bytes)).toMatch(/^HTTP\/1\.1 408 /);
  });
});
