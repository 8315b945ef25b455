import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { checkCommand, openSilentApi, password, secretFile } from '../../support/check-command.ts';
import { startRedisProcess } from '../../support/redis-process.ts';
import { type Certificates, hasOpenssl, makeCertificates, startTlsRedis } from '../../support/tls.ts';

type AtEnd = TestContext['onTestFinished'];

openSilentApi();

const startWithPassword = (atEnd: AtEnd) =>
  startRedisProcess(atEnd, { args: () => ['--requirepass', password], login: { password } });

describe.concurrent('expunge check of one Redis', () => {
  it('goes from the way in to what it promises', async ({ expect, onTestFinished }) => {
    const redis = await startWithPassword(onTestFinished);
    const { lines, code } = await checkCommand({
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      EXPUNGE_REDIS_PASSWORD_FILE: secretFile(redis, password),
    });
    expect(lines).toEqual([
      `ok redis redis://127.0.0.1:${redis.port} (REDIS_URL)`,
      `ok redis reach: 127.0.0.1:${redis.port} accepts connections`,
      'ok redis login: accepted as default',
      expect.stringMatching(/^ok redis version: (redis|valkey) \d/),
      expect.stringMatching(/^ok redis memory: it evicts nothing; [\d.]+ MB used$/),
      expect.stringMatching(/^ok redis files: it keeps an append-only file, flushed each second/),
      expect.stringMatching(/^(ok redis distance: it answers in|warn redis distance: it is) [\d.]+ ms/),
      'ok redis rights: the login may do all that is needed',
      'ok redis writes: it accepts them',
    ]);
    expect(code).toBe(0);
  });

  it('says what is wrong with the login, and with which', async ({ expect, onTestFinished }) => {
    const redis = await startWithPassword(onTestFinished);
    const url = `redis://127.0.0.1:${redis.port}`;
    const [none, wrong] = await Promise.all([
      checkCommand({ REDIS_URL: url }),
      checkCommand({ REDIS_URL: url, EXPUNGE_REDIS_PASSWORD_FILE: secretFile(redis, 'canary-wrong-4716') }),
    ]);
    expect(none).toMatchObject({
      code: 6,
      lines: expect.arrayContaining([
        'fail redis login: it wants a password, and got none',
        expect.stringContaining('EXPUNGE_REDIS_PASSWORD_FILE'),
      ]),
    });
    expect(wrong).toMatchObject({
      code: 6,
      lines: expect.arrayContaining(['fail redis login: it refuses this user or password']),
    });
  });

  it('says that it is full', async ({ expect, onTestFinished }) => {
    const redis = await startRedisProcess(onTestFinished, { args: () => ['--maxmemory', '100kb'] });
    const { lines, code } = await checkCommand({ REDIS_URL: `redis://127.0.0.1:${redis.port}` });
    expect(lines).toContainEqual(
      expect.stringMatching(/^warn redis memory: .* used of 0\.1 MB; runs stop when it is full$/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/^fail redis writes: its memory is full.*\(OOM\)$/));
    expect(code).toBe(6);
  });

  it('gives a script one object a finding', async ({ expect, onTestFinished }) => {
    const { port } = await startRedisProcess(onTestFinished, { args: () => ['--appendonly', 'no'] });
    const { findings } = await checkCommand({ REDIS_URL: `redis://127.0.0.1:${port}` }, ['--json']);
    expect(findings).toContainEqual({
      v: 1,
      type: 'check',
      what: 'redis',
      ok: true,
      aspect: 'files',
      state: 'warn',
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
    const { lines, code } = await checkCommand({
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
    ['it wants a certificate from us', 'EXPUNGE_REDIS_CA_FILE', () => made.ca, 'EXPUNGE_REDIS_CERT_FILE'],
    [
      'signed by an authority that is not trusted here',
      'EXPUNGE_REDIS_CA_FILE',
      () => made.otherCa,
      'EXPUNGE_REDIS_CA_FILE',
    ],
    ['not trusted here', 'EXPUNGE_REDIS_SERVER_NAME', () => 'redis.example', 'EXPUNGE_REDIS_CA_FILE'],
  ])('says "%s": exit 6', async (words, variable, value, next) => {
    const { lines, code } = await checkCommand({ REDIS_URL: url, [variable]: value() });
    expect(lines.at(-2)).toMatch(/^fail redis tls: /);
    expect(lines.at(-2)).toContain(words);
    expect(lines.at(-1)).toContain(next);
    expect(code).toBe(6);
  });

  it('says that another port speaks no TLS', async ({ onTestFinished }) => {
    const { port } = await startRedisProcess(onTestFinished);
    const { lines } = await checkCommand({ REDIS_URL: `rediss://127.0.0.1:${port}` });
    expect(lines.at(-2)).toMatch(/^fail redis tls: .*it does not speak TLS on this port$/);
  });
});
