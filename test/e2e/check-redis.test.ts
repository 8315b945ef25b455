import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, type TestContext, test } from 'vitest';
import { expunge } from '../support/cli.ts';
import { openCluster } from '../support/cluster.ts';
import { type RedisProcess, startRedisProcess } from '../support/redis-process.ts';
import { openSentinelSet } from '../support/sentinel.ts';
import { type Certificates, hasOpenssl, makeCertificates, startTlsRedis } from '../support/tls.ts';

type AtEnd = TestContext['onTestFinished'];

const password = 'canary-password-4714';
const known = [password, 'canary-sentinel-4715', 'canary-wrong-4716'];

/** Takes connections, and hears nothing. */
const api = createServer((socket) => socket.on('error', () => {}));
beforeAll(async () => {
  await once(api.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => void api.close());

type Checked = { code: number | null; lines: string[]; findings: unknown[] };

/** The lines of `expunge check` about Redis, and how it ends. No secret is ever among them. */
async function check(env: NodeJS.ProcessEnv, args: string[] = []): Promise<Checked> {
  const usual = { EXPUNGE_TOKEN: 'token', EXPUNGE_BASE_URL: `http://127.0.0.1:${(api.address() as AddressInfo).port}` };
  const { stdout, stderr, code } = await expunge(['check', ...args], { env: { ...usual, ...env } });
  expect(known.filter((secret) => (stdout + stderr).includes(secret))).toEqual([]);
  expect(stderr).toBe('');
  const isOfRedis = (line: string) => / redis | → /.test(line);
  if (args.includes('--json'))
    return {
      code,
      lines: [],
      findings: stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    };
  return {
    findings: [],
    code,
    lines: stdout
      .split('\n')
      .filter(isOfRedis)
      .map((line) => line.trim().replace(/ +/g, ' ')),
  };
}

function fileOf({ folder }: RedisProcess, text: string): string {
  const path = join(folder, 'secret');
  writeFileSync(path, `${text}\n`, { mode: 0o600 });
  return path;
}

const startWithPassword = (atEnd: AtEnd) =>
  startRedisProcess(atEnd, { args: () => ['--requirepass', password], login: { password } });

describe.concurrent('expunge check of one Redis', () => {
  it('goes from the way in to what it promises', async ({ expect, onTestFinished }) => {
    const redis = await startWithPassword(onTestFinished);
    const { lines, code } = await check({
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      EXPUNGE_REDIS_PASSWORD_FILE: fileOf(redis, password),
    });
    expect(lines).toEqual([
      `ok redis Redis: redis://127.0.0.1:${redis.port} (REDIS_URL)`,
      `ok redis reach: 127.0.0.1:${redis.port} accepts connections`,
      'ok redis login: accepted as default',
      expect.stringMatching(/^ok redis version: (redis|valkey) \d/),
      expect.stringMatching(/^ok redis memory: it evicts nothing; [\d.]+ MB used$/),
      expect.stringMatching(/^ok redis files: it keeps an append-only file, flushed each second/),
      'ok redis rights: the login may do all that is needed',
      'ok redis writes: it accepts them',
    ]);
    expect(code).toBe(0);
  });

  it('says what is wrong with the login, and with which', async ({ expect, onTestFinished }) => {
    const redis = await startWithPassword(onTestFinished);
    const url = `redis://127.0.0.1:${redis.port}`;
    const [none, wrong] = await Promise.all([
      check({ REDIS_URL: url }),
      check({ REDIS_URL: url, EXPUNGE_REDIS_PASSWORD_FILE: fileOf(redis, 'canary-wrong-4716') }),
    ]);
    expect(none).toMatchObject({
      code: 6,
      lines: expect.arrayContaining([
        'fail redis login: it wants a password, and got none',
        expect.stringContaining('--redis-password-file'),
      ]),
    });
    expect(wrong).toMatchObject({
      code: 6,
      lines: expect.arrayContaining(['fail redis login: it refuses this user or password']),
    });
  });

  it('says that it is full', async ({ expect, onTestFinished }) => {
    const redis = await startRedisProcess(onTestFinished, { args: () => ['--maxmemory', '100kb'] });
    const { lines, code } = await check({ REDIS_URL: `redis://127.0.0.1:${redis.port}` });
    expect(lines).toContainEqual(
      expect.stringMatching(/^warn redis memory: .* used of 0\.1 MB; runs stop when it is full$/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/^fail redis writes: its memory is full.*\(OOM\)$/));
    expect(code).toBe(6);
  });

  it('gives a script one object a finding', async ({ expect, onTestFinished }) => {
    const { port } = await startRedisProcess(onTestFinished, { args: () => ['--appendonly', 'no'] });
    const { findings } = await check({ REDIS_URL: `redis://127.0.0.1:${port}` }, ['--json']);
    expect(findings).toContainEqual({
      ...{ v: 1, type: 'check', what: 'redis', ok: true, aspect: 'files', state: 'warn' },
      words: expect.stringContaining('no append-only file'),
      next: 'set appendonly to yes',
    });
  });
});

describe.runIf(hasOpenssl())('expunge check of a Redis behind TLS', () => {
  const atTheEnd: (() => Promise<void>)[] = [];
  const atEnd = (task: () => Promise<void>) => void atTheEnd.push(task);
  let made: Certificates;
  let url: string;

  beforeAll(async () => {
    made = makeCertificates(atEnd);
    const { port } = await startTlsRedis(atEnd, made, { wantsClientCertificate: true });
    url = `rediss://127.0.0.1:${port}`;
  });
  afterAll(async () => {
    for (const task of atTheEnd.reverse()) await task();
  });

  it('names the certificate, and who signed it', async () => {
    const { lines, code } = await check({
      REDIS_URL: url,
      EXPUNGE_REDIS_CA_FILE: made.ca,
      EXPUNGE_REDIS_CERT_FILE: made.client.cert,
      EXPUNGE_REDIS_KEY_FILE: made.client.key,
    });
    expect(lines).toContainEqual(
      expect.stringMatching(
        /^warn redis tls: TLSv1\.3, verified: the certificate of server, signed by expunge test ca, until \d{4}-/,
      ),
    );
    expect(code).toBe(0);
  });

  it.each([
    ['it wants a certificate from us', 'EXPUNGE_REDIS_CA_FILE', () => made.ca, '--redis-cert-file'],
    ['signed by an authority that is not trusted here', 'EXPUNGE_REDIS_CA_FILE', () => made.otherCa, '--redis-ca-file'],
    ['not trusted here', 'EXPUNGE_REDIS_SERVER_NAME', () => 'redis.example', '--redis-ca-file'],
  ])('says "%s": exit 6', async (words, variable, value, next) => {
    const { lines, code } = await check({ REDIS_URL: url, [variable]: value() });
    expect(lines.at(-2)).toMatch(/^fail redis tls: /);
    expect(lines.at(-2)).toContain(words);
    expect(lines.at(-1)).toContain(next);
    expect(code).toBe(6);
  });

  it('sees a Sentinel set behind TLS as well, and commands use it', async ({ onTestFinished }) => {
    const set = await openSentinelSet(onTestFinished, { made, password });
    const env = { REDIS_URL: set.url, EXPUNGE_REDIS_CA_FILE: made.ca };
    const { lines, code } = await check(env);
    expect(lines).toContainEqual(
      expect.stringMatching(/^ok redis sentinels: 3 of 3 name 127\.0\.0\.1:\d+ the primary/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/^warn redis tls: TLSv1\.3, verified/));
    expect(code).toBe(0);
    const { stderr, code: ended } = await expunge(['runs'], { env });
    expect(stderr).not.toContain('warning');
    expect(ended).toBe(0);
  });

  it('says that another port speaks no TLS', async ({ onTestFinished }) => {
    const { port } = await startRedisProcess(onTestFinished);
    const { lines } = await check({ REDIS_URL: `rediss://127.0.0.1:${port}` });
    expect(lines.at(-2)).toMatch(/^fail redis tls: .*it does not speak TLS on this port$/);
  });
});

test('expunge check of a Sentinel set says who is primary and who is missing', async ({ onTestFinished }) => {
  const set = await openSentinelSet(onTestFinished, { password, sentinelPassword: 'canary-sentinel-4715' });
  const [sentinel] = set.sentinels;
  const { port } = await set.primary();
  const env = { REDIS_URL: set.url, EXPUNGE_SENTINEL_PASSWORD_FILE: fileOf(sentinel!, 'canary-sentinel-4715') };
  const { lines, code } = await check(env);
  expect(lines).toContain(
    `ok redis sentinels: 3 of 3 name 127.0.0.1:${port} the primary, and enough of them are running to elect another one`,
  );
  expect(lines).toContain('ok redis replicas: 2 of 2 in sync');
  expect(code).toBe(0);
  sentinel!.signal('SIGKILL');
  expect((await check(env)).lines).toContain(
    `warn redis sentinels: 2 of 3 name 127.0.0.1:${port} the primary; 127.0.0.1:${sentinel!.port}: connection refused`,
  );
  const withoutLogin = await check({ REDIS_URL: set.url });
  expect(withoutLogin.lines.at(-1)).toContain('--sentinel-password-file');
  expect(withoutLogin.code).toBe(6);
  const unknown = await check({ ...env, REDIS_URL: set.url.replace(/main$/, 'other') });
  expect(unknown.lines.at(-2)).toBe('fail redis sentinels: they know no primary called "other", only main');
  const runs = await expunge(['runs'], { env: { ...env, REDIS_URL: set.url.replace(/main$/, 'other') } });
  expect(runs.stderr).toContain('/other: its sentinels: they know no primary called "other", only main');
  expect(runs.code).toBe(6);
});

test('expunge check of a cluster looks at each primary, and at the slots', async ({ onTestFinished }) => {
  const { url, nodes } = await openCluster(onTestFinished);
  const { lines, code } = await check({ REDIS_URL: `${url},127.0.0.1:9` });
  expect(lines).toContain('warn redis reach: 127.0.0.1:9: connection refused');
  expect(lines.filter((line) => /^ok redis memory: .*\(port \d+\)$/.test(line))).toHaveLength(3);
  expect(lines).toContain('ok redis cluster: 16384 of 16384 slots are served by 3 primaries');
  expect(lines.at(-1)).toBe('ok redis writes: it accepts them');
  expect(code).toBe(0);
  const alone = await check({ REDIS_URL: `redis://127.0.0.1:${nodes[0]!.port}` });
  expect(alone.lines).toContain('fail redis role: it is a server of a cluster');
  expect(alone.code).toBe(6);
});
