import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { describe, test } from 'vitest';
import { execute } from '../../../src/commands/setup/check.ts';
import { loadConfig } from '../../../src/config/read-config.ts';
import { readTargetAudit } from '../../../src/ledger/audit.ts';
import { startTarget, stopTarget } from '../../../src/ledger/steer-target.ts';
import { targetOf } from '../../../src/model/target.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import { keys } from '../../../src/redis/keys.ts';
import { type SandboxOptions, startSandbox } from '../../../src/sandbox/server.ts';
import { openBodyServer } from '../../support/body-server.ts';
import { openTestRedis, testRedisUrl } from '../../support/redis.ts';
import { forgetTarget } from '../../support/redis-keys.ts';
import { hasOpenssl, makeCertificates } from '../../support/tls.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** `expunge check` in this process. */
async function check(
  flags: Record<string, string>,
  options: Record<string, unknown> = {},
  env: NodeJS.ProcessEnv = {},
): Promise<{ exit: number; out: string }> {
  let out = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      out += chunk;
      done();
    },
  }) as unknown as NodeJS.WriteStream;
  const usual = { REDIS_URL: testRedisUrl(), EXPUNGE_TOKEN: 'canary-token-4711' };
  const { config, sources } = loadConfig({ flags, env: {}, configFile: undefined });
  const streams = { stdin: process.stdin, stdout: stream, stderr: stream };
  const outputClosed = new AbortController().signal;
  const all = {
    commandName: 'check',
    program: 'expunge',
    toType: toTypeAnywhere,
    argv: [],
    signals: process,
    status: { give() {} },
    args: [],
    verbosity: 'normal' as const,
    options,
    config,
    sources,
    env: { ...usual, ...env },
    outputClosed,
  };
  try {
    return { exit: await execute({ ...all, ...streams }), out };
  } catch (error) {
    return { exit: (error as { code: string }).code === 'USAGE' ? 2 : 1, out: String((error as Error).message) };
  }
}

const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port;

async function listening<S extends Server>(atEnd: AtEnd, server: S): Promise<S> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return server;
}

/** A server that never answers, and all it was sent. */
async function openListener(atEnd: AtEnd) {
  const heard: Buffer[] = [];
  const server = await listening(
    atEnd,
    createServer((socket) => socket.on('data', (data) => heard.push(data))),
  );
  return { url: `http://127.0.0.1:${portOf(server)}`, heard };
}

/** A proxy that passes everything on, or refuses with this status. */
async function openProxy(atEnd: AtEnd, status = 200) {
  const asked: (string | undefined)[] = [];
  const server = createHttpServer((_, response) => response.writeHead(500).end());
  server.on('connect', (request, socket: Socket) => {
    asked.push(request.headers['proxy-authorization']);
    socket.on('error', () => {});
    if (status !== 200) return void socket.end(`HTTP/1.1 ${status} no\r\n\r\n`);
    const [host = '', port = ''] = request.url!.split(':');
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 ok\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    onward.on('error', () => socket.destroy());
  });
  await listening(atEnd, server);
  return { url: `http://ana:geheim@127.0.0.1:${portOf(server)}`, asked };
}

async function openApi(atEnd: AtEnd, options: SandboxOptions = {}) {
  const sandbox = await startSandbox({ record: true, ...options });
  const redis = await openTestRedis();
  atEnd(async () => {
    redis.disconnect();
    await forgetTarget(sandbox.url);
    await sandbox.close();
  });
  return { sandbox, redis, fp: targetOf(sandbox.url, '').fp };
}

describe.concurrent('check connects to the API', () => {
  test('and says so, and that the API itself was not asked; not one byte is sent', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, heard } = await openListener(onTestFinished);
    const { exit, out } = await check({ baseUrl: url });
    expect(out).toMatch(
      /^ok {5}api {5}connected, without TLS, on this machine\. The token was not tested: --probe-id ID/m,
    );
    expect([exit, Buffer.concat(heard).toString()]).toEqual([0, '']);
  });

  test('and says where nobody listens: exit 6', async ({ expect }) => {
    const { exit, out } = await check({ baseUrl: 'http://127.0.0.1:9' });
    expect(out).toMatch(
      /^fail {3}api {5}http:\/\/127\.0\.0\.1:9: connection refused\n +→ check host and port, and that it runs$/m,
    );
    expect(exit).toBe(6);
  });

  test('and says that a port speaks no TLS: exit 6', async ({ expect, onTestFinished }) => {
    const { sandbox } = await openApi(onTestFinished);
    const { exit, out } = await check({ baseUrl: sandbox.url.replace(/^http:\/\/[^:]+/, 'https://127.0.0.1') });
    expect(out).toMatch(/^fail {3}api .*: it does not speak TLS on this port\n +→ use its TLS port/m);
    expect(exit).toBe(6);
  });

  test('and says that its name is not known: exit 6', async ({ expect }) => {
    const { exit, out } = await check({ baseUrl: 'https://no-such-host.invalid' });
    expect(out).toMatch(
      /^fail {3}host {4}no-such-host\.invalid: (no such host|its host name cannot be resolved)\n +→ /m,
    );
    expect(exit).toBe(6);
  });

  const proxy = 'http://ana:geheim@proxy.example.com:3128';
  test.for<[env: NodeJS.ProcessEnv, flags: Record<string, string>, variable: string | null]>([
    [{ HTTPS_PROXY: proxy }, {}, 'HTTPS_PROXY'],
    [{ https_proxy: proxy, HTTP_PROXY: proxy }, {}, 'https_proxy'],
    [{ ALL_PROXY: proxy, NO_PROXY: 'other.invalid' }, {}, 'ALL_PROXY'],
    [{ HTTP_PROXY: proxy }, {}, null],
    [{ HTTPS_PROXY: proxy, NO_PROXY: 'localhost, .invalid' }, {}, null],
    [{ HTTPS_PROXY: proxy }, { proxy: 'http://127.0.0.1:9' }, null],
    [{ HTTPS_PROXY: proxy }, { baseUrl: 'https://127.0.0.1:9' }, null],
  ])('and with %j %j warns of the proxy that it does not use: %s', async ([env, flags, variable], { expect }) => {
    const { out } = await check({ baseUrl: 'https://api.invalid', ...flags }, {}, env);
    const warning = `warn   target  proxy: ${variable} is set, and expunge does not read it\n                → to use that proxy, add --proxy "$${variable}"\n`;
    expect(out.includes(warning)).toBe(variable !== null);
    expect(out).not.toContain('geheim');
  });

  test.skipIf(!hasOpenssl())('with TLS, by the certificates of --ca-file', async ({ expect, onTestFinished }) => {
    const made = makeCertificates(onTestFinished);
    const [cert, key] = [readFileSync(made.server.cert), readFileSync(made.server.key)];
    const server = await listening(onTestFinished, createTlsServer({ cert, key }));
    const proxy = await openProxy(onTestFinished);
    const baseUrl = `https://localhost:${portOf(server)}`;
    const [bare, trusted, behind] = await Promise.all([
      check({ baseUrl }),
      check({ baseUrl, caFile: made.ca }),
      check({ baseUrl, caFile: made.ca, proxy: proxy.url }),
    ]);
    expect(bare.out).toMatch(
      /^fail {3}api .*an authority that is not trusted here\n +→ name that authority with --ca-file/m,
    );
    expect(trusted.out).toMatch(/^ok {5}api {5}connected, with TLS, its certificate is trusted\./m);
    expect(behind.out).toMatch(
      /^ok {5}api {5}connected through the proxy http:\/\/\*\*\*@127\.0\.0\.1:\d+, with TLS,/m,
    );
    expect([bare.exit, trusted.exit, behind.exit]).toEqual([6, 0, 0]);
    expect(proxy.asked).toEqual([`Basic ${Buffer.from('ana:geheim').toString('base64')}`]);
    expect(behind.out).not.toContain('geheim');
  });

  test('unless --ca-file holds no certificates: exit 2', async ({ expect, onTestFinished }) => {
    const folder = mkdtempSync(join(tmpdir(), 'expunge-check-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const caFile = join(folder, 'ca.pem');
    writeFileSync(caFile, 'nonsense');
    const { exit, out } = await check({ baseUrl: 'https://127.0.0.1:9', caFile });
    expect(out).toContain(`fail   api     --ca-file ${caFile}: expected certificates in PEM\n`);
    expect(exit).toBe(2);
  });

  test('through the proxy, and says that this one refuses: exit 6', async ({ expect, onTestFinished }) => {
    const { url } = await openProxy(onTestFinished, 407);
    const { exit, out } = await check({ baseUrl: 'https://api.example.com', proxy: url });
    expect(out).toMatch(/^ok {5}host {4}the proxy 127\.0\.0\.1 is 127\.0\.0\.1$/m);
    expect(out).toMatch(
      /^fail {3}api .*the proxy refused to pass it on: 407\n +→ check --proxy, and the user and password/m,
    );
    expect(out).not.toContain('geheim');
    expect(exit).toBe(6);
  });

  test('unless there is no token: exit 5, and the rest is told all the same', async ({ expect, onTestFinished }) => {
    const { url } = await openListener(onTestFinished);
    const { exit, out } = await check({ baseUrl: url }, {}, { EXPUNGE_TOKEN: '' });
    expect(out).toMatch(/^fail {3}token {3}expected an access token in EXPUNGE_TOKEN .*got none\n +→ write the token/m);
    expect(out).not.toContain('from EXPUNGE_TOKEN');
    expect([exit, out.includes('writes: it accepts them')]).toEqual([5, true]);
  });
});

describe.concurrent('check --probe-id sends one real DELETE', () => {
  const views = { resource: 'views' };

  test('and says what it did, and notes it', async ({ expect, onTestFinished }) => {
    const { sandbox, redis, fp } = await openApi(onTestFinished, { objects: { views: 1 } });
    const env = { EXPUNGE_TOKEN: sandbox.token };
    const probe = { probeId: 'v-000001', reason: 'OPS-7' };
    const first = await check({ baseUrl: sandbox.url, ...views }, probe, env);
    expect(first.out).toContain(`ok     probe   DELETE ${sandbox.url}/v2/views/v-000001 was answered 204: deleted\n`);
    const again = await check({ baseUrl: sandbox.url, ...views }, { ...probe, json: true }, env);
    expect(JSON.parse(again.out.trimEnd().split('\n').at(-1)!)).toMatchObject({
      type: 'check',
      what: 'probe',
      ok: true,
      state: 'warn',
      words: expect.stringContaining('was answered 404: absent: the object does not exist'),
    });
    expect([first.exit, again.exit, sandbox.counts.requests]).toEqual([0, 0, 2]);
    expect(await readTargetAudit(redis, fp)).toMatchObject([
      { action: 'probe', by: 'operator', reason: 'OPS-7', what: '/v2/views/v-000001' },
      { action: 'probe' },
    ]);
  });

  test.for(['length', 'chunked', 'samePacket', 'laterPacket'] as const)(
    'and warns of a 204 with a body, which another server may have sent: %s',
    async (framing, { expect, onTestFinished }) => {
      const { url } = await openBodyServer(onTestFinished, framing);
      const { exit, out } = await check({ baseUrl: url, ...views }, { probeId: 'v-1' });
      expect(exit).toBe(0);
      expect(out).toMatch(
        /^warn +probe .* was answered 204: deleted\. 1 answer was 204 with a body, which HTTP does not/m,
      );
      expect(out).toContain('is it the API that answers?\n');
      expect(out).toContain('→ verify the base URL: a proxy or another server may answer in place of the API\n');
    },
  );

  test.for(['proper', 'lengthZero'] as const)(
    'and warns of no 204 without a body: %s',
    async (framing, { expect, onTestFinished }) => {
      const { url } = await openBodyServer(onTestFinished, framing);
      const { exit, out } = await check({ baseUrl: url, ...views }, { probeId: 'v-1' });
      expect(exit).toBe(0);
      expect(out).toMatch(/^ok +probe .* was answered 204: deleted$/m);
      expect(out).not.toContain('body');
    },
  );

  test.for<[string, number, RegExp]>([
    ['401', 5, /was answered 401: the API rejected the token.*\n +→ use another token/],
    ['403', 3, /was answered 403: failed; it says: /],
    ['503', 3, /was answered 503: it may have been executed, and a run would try again later/],
    ['402', 4, /was answered 402: a run would halt: the API answered 402/],
    ['200', 3, /was answered 200: unknown/],
  ])('and judges a %s by the verdict table', async ([status, code, words], { expect, onTestFinished }) => {
    const { sandbox } = await openApi(onTestFinished, { faults: { [`status-${status}`]: 1 } });
    const { exit, out } = await check(
      { baseUrl: sandbox.url, ...views },
      { probeId: 'v-000001' },
      { EXPUNGE_TOKEN: sandbox.token },
    );
    expect(out).toMatch(words);
    expect(out).not.toContain(sandbox.token);
    expect([exit, sandbox.counts.requests]).toEqual([code, 1]);
  });

  test('but not while the target is stopped, or something else is wrong', async ({ expect, onTestFinished }) => {
    const { sandbox, redis, fp } = await openApi(onTestFinished);
    const author = { who: 'ana', reason: 'they call us', at: Date.now() };
    await stopTarget(redis, fp, author);
    const env = { EXPUNGE_TOKEN: sandbox.token };
    const [probe, flags] = [{ probeId: 'v-000001' }, { baseUrl: sandbox.url, ...views }];
    const stopped = await check(flags, probe, env);
    expect(stopped.out).toMatch(
      /^fail {3}probe {3}not sent\. Stopped for all runs of this target by ana: they call us/m,
    );
    await startTarget(redis, fp, author);
    const [seconds] = await redis.time();
    const [seenAt, holdUntil] = [Number(seconds) * 1_000, (Number(seconds) + 60) * 1_000];
    const waits = { seenAt, holdUntil, holdWhy: 'the server answered 429 and sent Retry-After 60' };
    await redis.hset(keys.limiter(fp), waits);
    const held = await check(flags, probe, env);
    expect(held.out).toMatch(
      /^fail {3}probe {3}not sent\. the server answered 429 and sent Retry-After 60; 1? ?\S+ .* left$/m,
    );
    await redis.del(keys.limiter(fp));
    const unfit = await check(flags, probe, { ...env, REDIS_URL: 'redis://127.0.0.1:9' });
    expect(unfit.out).toMatch(/^fail {3}probe {3}not sent, because another check failed$/m);
    expect([stopped.exit, held.exit, unfit.exit, sandbox.counts.requests]).toEqual([4, 4, 6, 0]);
  });

  test('and refuses what it could not send before anything else: exit 2', async ({ expect, onTestFinished }) => {
    const kindless = await check({ baseUrl: 'http://127.0.0.1:9' }, { probeId: 'v-1' });
    const unsafe = await check({ baseUrl: 'http://127.0.0.1:9', ...views }, { probeId: 'a/b' });
    const folder = mkdtempSync(join(tmpdir(), 'expunge-check-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const protect = join(folder, 'keep.txt');
    writeFileSync(protect, 'v-1\nv-2\n');
    const kept = await check({ baseUrl: 'http://127.0.0.1:9', ...views, protect }, { probeId: 'v-2' });
    expect([kindless, unsafe, kept]).toEqual([
      { exit: 2, out: '--probe-id needs the resource of the object it deletes' },
      { exit: 2, out: '--probe-id: this id is not safe to send (unsafe_character)' },
      { exit: 2, out: `--probe-id: ${protect} protects this id` },
    ]);
  });
});

test('check --verdicts says which answers halt a run, and for how many ids', async ({ expect }) => {
  const { exit, out } = await check({}, { verdicts: true });
  expect(exit).toBe(0);
  expect(out.split('\n')).toEqual(
    expect.arrayContaining([
      'A run is halted by these answers',
      expect.stringMatching(/^ {2}405, 415, 501, 505 +for 20 ids in a row$/),
      expect.stringMatching(/^ {2}any other of 400-499 +for 20 ids in a row$/),
    ]),
  );
});
