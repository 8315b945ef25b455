import { afterEach, describe, expect, test } from 'vitest';
import { TargetConnection } from '../../../src/delete/send-delete.ts';
import { type Answer, makeVerdictTable, verdictOf } from '../../../src/delete/verdict.ts';
import { readTargetState } from '../../../src/limiter/read-target.ts';
import { bearerForm, type Definition, defineResources } from '../../../src/model/resource.ts';
import { targetOf } from '../../../src/model/target.ts';
import { readVersion } from '../../../src/version.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';
import { openRawServer, type RawAnswer, rawAnswer } from '../../support/raw-server.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

afterEach(() => defineResources({}));

const path = '/v1/dashboards/{id}';

/** A harness whose commands know `dashboards`, and send their requests to the server that answers so. */
async function openDashboards(
  atEnd: AtEnd,
  definition: Partial<Omit<Definition, 'auth'>> & { auth?: object },
  answer: (request: string, nth: number) => RawAnswer,
) {
  const harness = await openHarness(atEnd);
  const server = await openRawServer(atEnd, answer);
  atEnd(() => forgetTarget(server.url));
  const config = harness.file('c.json', JSON.stringify({ resources: { dashboards: { path, ...definition } } }));
  const env: NodeJS.ProcessEnv = { EXPUNGE_BASE_URL: server.url, EXPUNGE_CONFIG: config };
  const run = (ids: readonly string[], ...args: string[]) =>
    harness.run([harness.list(ids), '--resource', 'dashboards', '--yes', '--json', ...args], { env });
  return { harness, server, env, run };
}

const json = ['Content-Type: application/json'];
const ok = '{"status": "deleted"}';
const cutOff = (bytes: string): RawAnswer => ({ bytes, isCutOff: true });
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const halfOf200 = cutOff('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"s');
const halfOf404 = cutOff('HTTP/1.1 404 Not Found\r\nContent-Length: 5000\r\n\r\nshort');

/** What one request over a connection of its own is answered, and the requests that the server saw. */
async function ask(atEnd: AtEnd, first: RawAnswer, auth: Definition['auth'] = bearerForm.auth, headers = {}) {
  const server = await openRawServer(atEnd, () => first);
  const own = { ca: null, proxy: null };
  const connection = new TargetConnection({ origin: server.url, requestTimeoutMs: 10_000, ...own });
  atEnd(async () => connection.close());
  const request = { path: '/v1/dashboards/d-1', form: { auth, headers }, maySend: () => true, noteBody: () => {} };
  const answer = await new Promise<Answer | null>((done) =>
    connection.send({ ...request, authorization: 'Bearer t' }, done),
  );
  return { answer: answer!, seen: server.seen };
}

describe('one request for a configured resource', () => {
  const page = rawAnswer(200, '<p>Sign in', ['Content-Type: text/html']);
  const inDoubt = { kind: 'retry', ambiguous: true };
  test.for<[what: string, definition: Partial<Definition>, answer: RawAnswer, means: object | string]>([
    ['200 with JSON', { success: [200] }, rawAnswer(200, ok, json), 'deleted'],
    ['200 without a body', { success: [200] }, rawAnswer(200), 'deleted'],
    ['200 in chunks', { success: [200] }, { bytes: `${chunked}4\r\nokay\r\n0\r\n\r\n` }, 'deleted'],
    ['200 with 1 MB', { success: [200] }, rawAnswer(200, 'x'.repeat(1_000_000)), 'deleted'],
    ['200 until the connection ends', { success: [200] }, cutOff('HTTP/1.1 200 OK\r\n\r\nokay'), 'deleted'],
    ['200, cut off before its length', { success: [200] }, halfOf200, inDoubt],
    ['200, cut off between chunks', { success: [200] }, cutOff(`${chunked}4\r\nokay\r\n`), inDoubt],
    ['200 with a page', { success: [200] }, page, 'unknown'],
    ['200 where 204 is named', {}, rawAnswer(200, ok, json), 'unknown'],
    ['200 with rate headers', { success: [200] }, rawAnswer(200, ok, ['RateLimit-Remaining: 50']), 'deleted'],
    ['200 with a page that has no type', { success: [200] }, rawAnswer(200, '\n<p>Sign in'), 'unknown'],
    ['200 with XML', { success: [200] }, rawAnswer(200, '<Error/>', ['Content-Type: application/xml']), 'unknown'],
    ['301', { success: [200] }, rawAnswer(301, '', ['Location: /v1/dashboards/other']), 'unknown'],
    ['303', {}, rawAnswer(303, '', ['Location: /v1/dashboards']), 'unknown'],
    ['406', {}, rawAnswer(406), 'unknown'],
    ['404, cut off', {}, halfOf404, inDoubt],
    ['400, cut off', {}, cutOff('HTTP/1.1 400 Bad\r\nContent-Length: 9\r\n\r\n{"s'), inDoubt],
    ['410 where 410 is named', { success: [200], absent: [410] }, rawAnswer(410), 'absent'],
  ])('that is answered %s means what its definition says', async ([, definition, first, means], at) => {
    const { answer, seen } = await ask(at.onTestFinished, first);
    const table = makeVerdictTable('', { success: [204], absent: [404, 410], ...definition });
    const expected = typeof means === 'string' ? { kind: 'settle', outcome: means } : means;
    expect(verdictOf(answer, false, table)).toMatchObject(expected);
    expect(seen).toHaveLength(1);
  });

  test.for<[auth: Definition['auth'], line: string]>([
    [{ header: 'x-api-key', scheme: '' }, 'x-api-key: t'],
    [{ header: 'x-api-key', scheme: 'Key' }, 'x-api-key: Key t'],
    [{ header: 'authorization', scheme: 'Token' }, 'authorization: Token t'],
    [{ header: 'authorization', scheme: '' }, 'authorization: t'],
  ])('has its token where %j says', async ([auth, line], { onTestFinished }) => {
    const { seen } = await ask(onTestFinished, rawAnswer(204), auth);
    expect(seen[0]!.split('\r\n').filter((other) => /^(x-api-key|authorization):/i.test(other))).toEqual([line]);
  });
});

test.for<[headers: Definition['headers'], sent: string]>([
  [{}, `expunge/${readVersion()}`],
  [{ 'user-agent': 'cleanup (ops@example.com)' }, 'cleanup (ops@example.com)'],
])('a request with the fixed headers %j has one User-Agent: %s', async ([headers, sent], { onTestFinished }) => {
  const { seen } = await ask(onTestFinished, rawAnswer(204), bearerForm.auth, headers);
  expect(seen[0]!.split('\r\n').filter((line) => /^user-agent:/i.test(line))).toEqual([`user-agent: ${sent}`]);
});

describe('a run of one id of a configured resource', () => {
  test.for<[what: string, definition: Partial<Definition>, answer: RawAnswer, outcome: string, onStatus?: string]>([
    ['200', { success: [200] }, rawAnswer(200, ok, json), 'deleted'],
    ['202 with Retry-After', { success: [202] }, rawAnswer(202, '', ['Retry-After: 3600']), 'deleted'],
    ['200, cut off, and then 404', { success: [200] }, halfOf200, 'gone_unconfirmed'],
    ['404, cut off, and then 404', {}, halfOf404, 'gone_unconfirmed'],
    ['303', {}, rawAnswer(303), 'unknown'],
    ['406', {}, rawAnswer(406), 'unknown'],
    ['303, and then 404', {}, rawAnswer(303), 'gone_unconfirmed', '303=retry'],
    ['409 where 409 is named', { success: [200], absent: [409] }, rawAnswer(409), 'absent'],
  ])('that is answered %s', async ([, definition, first, outcome, onStatus], { onTestFinished }) => {
    const requests = outcome === 'gone_unconfirmed' ? 2 : 1;
    const { run, server } = await openDashboards(onTestFinished, definition, (_, nth) =>
      nth === 1 ? first : rawAnswer(404),
    );
    const summary = summaryIn(
      await run(['d-1'], '--expect-absent', ...(onStatus ? ['--on-status', onStatus] : [])),
    ) as unknown as Record<string, unknown>;
    expect(summary).toMatchObject({ state: 'completed', [outcome]: 1 });
    for (const request of server.seen) expect(request).toMatch(/^DELETE \/v1\/dashboards\/d-1 HTTP/);
    expect(server.seen).toHaveLength(requests);
  });
});

const many = (n: number) => Array.from({ length: n }, (_, i) => `d-${i + 1}`);

describe('a run of a configured resource halts', () => {
  test.for<[code: string, definition: Partial<Definition>, status: number]>([
    ['unexpected_answers', { success: [200] }, 204],
    ['unexpected_answers', {}, 303],
    ['unexpected_answers', {}, 406],
    ['all_absent', { success: [200], absent: [410] }, 404],
    ['all_absent', { success: [200], absent: [409] }, 409],
  ])('for %s: %j is answered %i', async ([code, definition, status], { onTestFinished }) => {
    const { run, harness } = await openDashboards(onTestFinished, definition, () => rawAnswer(status));
    expect(summaryIn(await run(many(400)))).toMatchObject({ state: 'halted' });
    expect(await harness.onlyRun()).toMatchObject({ halt: code });
  });

  const page = '<!DOCTYPE html><title>Sign in</title>';
  test.for<[what: string, other: RawAnswer]>([
    ['an error in JSON', rawAnswer(200, '{"ok":false,"error":"ratelimited"}', json)],
    ['another result in JSON', rawAnswer(200, '{"result":"not_found","deleted":0}', json)],
    ['XML', rawAnswer(200, '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', json)],
    ['a page without a type', rawAnswer(200, page)],
    ['a page as text', rawAnswer(200, page, ['Content-Type: text/plain'])],
    ['no body', rawAnswer(200, '')],
  ])('when its successes become %s, and calls no id deleted for them', async ([, other], { onTestFinished }) => {
    let requests = 0;
    const { run, harness } = await openDashboards(onTestFinished, { success: [200] }, () =>
      ++requests <= 100 ? rawAnswer(200, '{"ok":true}', json) : other,
    );
    const { state, deleted, unknown } = summaryIn(await run(many(400))) as unknown as Record<string, number | string>;
    expect([state, deleted]).toEqual(['halted', 100]);
    expect(unknown).toBeGreaterThanOrEqual(3);
    expect(await harness.onlyRun()).toMatchObject({ halt: 'unexpected_answers' });
    expect(summaryIn(await run(many(400)))).toMatchObject({ state: 'halted', deleted: 100 });
  });

  test('for another form than before, until it is cancelled: a new run takes the form of its own first answers', async ({
    onTestFinished,
  }) => {
    let requests = 0;
    const { run, harness, env } = await openDashboards(onTestFinished, { success: [200] }, () =>
      rawAnswer(200, ++requests <= 100 ? '{"ok":true}' : '{"id":"d","state":"deleted"}', json),
    );
    expect(summaryIn(await run(many(400)))).toMatchObject({ state: 'halted', deleted: 100 });
    const { id } = await harness.onlyRun();
    expect(await harness.expunge(['cancel', id, '--yes'], { env })).toMatchObject({ code: 0 });
    expect(summaryIn(await run(many(400)))).toMatchObject({ state: 'completed', deleted: 400 });
  });

  test('never because of its successes', async ({ onTestFinished }) => {
    const { run } = await openDashboards(onTestFinished, { success: [200] }, () => rawAnswer(200, ok, json));
    expect(summaryIn(await run(many(120)))).toMatchObject({ state: 'completed', deleted: 120 });
  });
});

describe('the token of a configured resource', () => {
  const token = 'Ab/1-geheim+x==';
  const headerOf = (request: string, name: string) =>
    new RegExp(`^${name}: (.*)$`, 'im').exec(request)?.[1]?.replace(/\r$/, '');

  test.for<[auth: object, header: string, value: string]>([
    [{ header: 'x-api-key', scheme: 'Key' }, 'x-api-key', `Key ${token}`],
    [{ header: 'authorization', scheme: '' }, 'authorization', token],
  ])('goes where %j says, and is shown nowhere', async ([auth, header, value], { onTestFinished }) => {
    const echo = (request: string) => {
      const sent = headerOf(request, header) ?? 'nothing';
      const forms = [sent, sent.replaceAll('/', '\\/'), encodeURIComponent(sent)];
      return rawAnswer(400, forms.join(' and '), [...json, `X-Request-Id: ${sent}`]);
    };
    const { harness, server, env, run } = await openDashboards(onTestFinished, { success: [200], auth }, (request) =>
      request.includes('d-2') ? echo(request) : rawAnswer(200, ok, json),
    );
    env.EXPUNGE_TOKEN = `Bearer ${token}`; // as people copy it
    const ran = await run(many(3), '--verbose');
    const { id } = await harness.onlyRun();
    expect(summaryIn(ran)).toMatchObject({ deleted: 2, failed: 1 });
    for (const request of server.seen) expect(headerOf(request, header)).toBe(value);
    if (header !== 'authorization') for (const request of server.seen) expect(request).not.toMatch(/^authorization:/im);
    const others = await Promise.all(
      [
        ['status', id, '--json', '--audit', '--history'],
        ['report', id],
        ['report', id, '--format', 'html'],
        ['explain', 'dashboards', 'd-2'],
        ['config', 'show'],
        ['check', '--probe-id', 'd-2', '--resource', 'dashboards', '--yes', '--verbose'],
      ].map((args) => harness.expunge(args, { env })),
    );
    const told = [ran, ...others].map(({ stdout, stderr }) => stdout + stderr);
    expect(told.join('\n')).toContain('***');
    for (const text of told) expect(text).not.toContain('geheim');
  });
});

test('a 401 to an API key leads to another token, as a 401 to a bearer token does', async ({ onTestFinished }) => {
  const resources = { dashboards: { path, success: [200], auth: { header: 'x-api-key' } } };
  defineResources({
    dashboards: { path, success: [200], absent: [404, 410], auth: { header: 'x-api-key', scheme: '' }, headers: {} },
  });
  const harness = await openHarness(onTestFinished, { objects: { dashboards: 200 }, latencyMs: 5 });
  const { sandbox } = harness;
  const env = {
    EXPUNGE_CONFIG: harness.file('c.json', JSON.stringify({ resources })),
    EXPUNGE_TOKEN: undefined,
    EXPUNGE_CLIENT_SECRET: sandbox.client.secret,
  };
  const ids = Array.from({ length: 200 }, (_, i) => `d-${String(i + 1).padStart(6, '0')}`);
  const token = ['--token-url', sandbox.tokenUrl, '--client-id', sandbox.client.id];
  const args = [harness.list(ids), '--resource', 'dashboards', '--yes', '--json', '--rate', '100/s', ...token];
  const running = harness.start(['run', ...args], env);
  await harness.runIs('half done', ({ counts }) => counts.deleted > 50);
  sandbox.revokeTokens();
  await running.ended;
  expect(summaryIn(running)).toMatchObject({ state: 'completed', deleted: 200 });
  expect(sandbox.counts.byStatus.get(401)).toBeGreaterThan(0);
});

test('probes, semantics, a sample and a rehearsal go by the definition', async ({ onTestFinished }) => {
  const there = new Set(['d-1', 'd-2', 'd-3']);
  const { harness, env, run } = await openDashboards(
    onTestFinished,
    { success: [202], absent: [410], repeat: 'harmless' },
    (request) => {
      const [, id = ''] = /dashboards\/(\S+)/.exec(request) ?? [];
      return there.delete(id) ? rawAnswer(202, ok, json) : rawAnswer(410);
    },
  );
  const expunge = (...args: string[]) => harness.expunge(args, { env });
  const probe = await expunge('check', '--probe-id', 'd-1', '--resource', 'dashboards', '--yes');
  expect(probe.stdout).toMatch(/DELETE http:\S+\/v1\/dashboards\/d-1 was answered 202: deleted/);
  const semantics = await expunge('check', '--semantics', '--resource', 'dashboards', '--yes');
  expect(semantics.stdout).toMatch(/dashboards: DELETE \S+ was answered 410: it says so if dashboards do not exist/);
  const { run: id } = summaryIn(await run(['d-2', 'd-3']));
  const sample = await expunge('verify', id, '--sample', '2', '--yes');
  expect([sample.code, sample.stdout]).toEqual([0, expect.stringContaining('2 were gone')]);
  const rehearsed = await run(['d-7', 'd-8'], '--rehearse');
  expect(rehearsed.stdout).toContain('"deleted":2');
});

test('a plan says that --on-status changes no success of a definition', async ({ onTestFinished }) => {
  const { run } = await openDashboards(onTestFinished, { success: [200] }, () => rawAnswer(200, ok, json));
  const plan = async (...args: string[]) => (await run(['d-1'], '--dry-run', ...args)).stderr.replace(/\s+/g, ' ');
  const says = '200 says deleted for dashboards, as the configuration file defines';
  expect(await plan('--on-status', '200=failed')).toContain(`${says}, whatever --on-status says`);
  expect(await plan('--on-status', '409=absent')).toContain(says);
  expect(await plan('--on-status', '409=absent')).not.toContain('whatever');
});

test.for([
  ['Retry-After: 600'],
  [`Retry-After: ${Math.ceil(Date.now() / 1_000) + 600}`],
  ['RateLimit-Remaining: 0', 'RateLimit-Reset: 600'],
  ['X-RateLimit-Remaining: 0', `X-RateLimit-Reset: ${new Date(Date.now() + 600_000).toISOString()}`],
])('a 429 with %j holds the run until an operator releases it', async (headers, { onTestFinished }) => {
  const { harness, server, env } = await openDashboards(onTestFinished, { success: [200] }, (_, nth) =>
    nth === 1 ? rawAnswer(429, '', headers) : rawAnswer(200, ok, json),
  );
  const args = [harness.list(['d-1']), '--resource', 'dashboards', '--yes', '--json'];
  const running = harness.start(['run', ...args], env);
  const { fp } = targetOf(server.url, harness.target.account);
  const held = await until('Redis knows it', async () => (await readTargetState(harness.redis, fp))?.hold);
  expect(held).toMatchObject({ kind: 'retry_after' });
  expect(held.leftMs).toBeGreaterThan(300_000);
  expect(server.seen).toHaveLength(1);
  expect((await harness.expunge(['target', 'release'], { env })).code).toBe(0);
  await running.ended;
  expect(summaryIn(running)).toMatchObject({ state: 'completed', deleted: 1 });
});
