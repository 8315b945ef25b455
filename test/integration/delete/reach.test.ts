import dns from 'node:dns';
import { readFileSync } from 'node:fs';
import { createServer as createHttp2Server, createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import { openRawServer, type RawAnswer, rawAnswer } from '../../support/raw-server.ts';
import { forgetTarget } from '../../support/redis-keys.ts';
import { startProxy } from '../../support/relay.ts';
import { type Certificates, hasOpenssl, makeCertificates } from '../../support/tls.ts';

afterEach(() => vi.restoreAllMocks());

const ids = makeIds('v', 60);
const run = (harness: Harness, env: NodeJS.ProcessEnv) =>
  harness.run([harness.list(ids), '--resource', 'views', '--yes', '--json'], { env });

/** Its address. It ends with the test. */
async function listen(atEnd: AtEnd, server: Server, scheme: 'http' | 'https'): Promise<string> {
  const open = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => void open.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  atEnd(async () => {
    await forgetTarget(url);
    for (const socket of open) socket.destroy();
    server.close();
  });
  return url;
}

/** A server that speaks HTTP/2 alone, without TLS. */
function openHttp2Server(atEnd: AtEnd): Promise<string> {
  return listen(
    atEnd,
    createHttp2Server().on('sessionError', () => {}),
    'http',
  );
}

const answers: Record<string, (request: string, nth: number) => RawAnswer> = {
  continue: () => ({ bytes: 'HTTP/1.1 100 Continue\r\n\r\n' }),
  large: () => rawAnswer(204, '', [`x-large: ${'x'.repeat(70_000)}`]),
  hangUp: () => ({ bytes: '', isCutOff: true }),
};

describe('a run whose target never answered in HTTP/1.1 halts with exit 6, and says in words', () => {
  test.for<[what: string, words: RegExp]>([
    ['continue', /has not answered any request: it sends 100 Continue, which was not asked for/],
    ['large', /has not answered any request: the headers of its answer are larger than 64 kB/],
    ['hangUp', /has not answered any request: connection closed before an answer came/],
    ['http2', /has not answered any request: it speaks only HTTP\/2 on this port/],
  ])('%s', async ([what, words], { onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const url =
      what === 'http2'
        ? await openHttp2Server(onTestFinished)
        : (await openRawServer(onTestFinished, answers[what]!)).url;
    onTestFinished(() => forgetTarget(url));
    const { code } = await run(harness, { EXPUNGE_BASE_URL: url, EXPUNGE_UNREACHABLE_TIMEOUT_MS: '500' });
    const { halt, reason, counts } = await harness.onlyRun();
    expect([code, halt]).toEqual([6, 'target_unreachable']);
    expect(reason).toMatch(words);
    expect(counts).toMatchObject({ deleted: 0, failed: 0, absent: 0 });
  });

  test('but not one that has answered before', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    let requests = 0;
    const { url } = await openRawServer(onTestFinished, () => {
      requests++;
      return requests > 5 && requests < 40 ? answers.hangUp!('', 1) : rawAnswer(204);
    });
    onTestFinished(() => forgetTarget(url));
    const summary = summaryIn(await run(harness, { EXPUNGE_BASE_URL: url, EXPUNGE_UNREACHABLE_TIMEOUT_MS: '1' }));
    expect(summary).toMatchObject({ state: 'completed', deleted: ids.length });
  });
});

describe('a name that is not found', () => {
  const name = 'api.expunge.test';

  /** The name service of this process. It finds the name as long as `isThere` says so. */
  function answerNames(isThere: () => boolean): void {
    const real = dns.lookup;
    vi.spyOn(dns, 'lookup').mockImplementation(((asked: string, options: dns.LookupOptions, done: Done) => {
      if (asked !== name) return real(asked, options as dns.LookupAllOptions, done as never);
      if (isThere()) return real('127.0.0.1', options as dns.LookupAllOptions, done as never);
      process.nextTick(done, Object.assign(new Error('not found'), { code: 'ENOTFOUND' }));
    }) as never);
  }
  type Done = (error: Error | null, ...found: unknown[]) => void;

  const openNamed = async (atEnd: AtEnd) => {
    const harness = await openHarness(atEnd);
    const { url, seen } = await openRawServer(atEnd, () => ({ ...rawAnswer(204), isCutOff: true }));
    const baseUrl = `http://${name}:${new URL(url).port}`;
    atEnd(() => forgetTarget(baseUrl));
    return { harness, seen, env: { EXPUNGE_BASE_URL: baseUrl, EXPUNGE_ALLOW_HTTP: name } };
  };

  test('halts the run at once', async ({ onTestFinished }) => {
    const { harness, seen, env } = await openNamed(onTestFinished);
    answerNames(() => false);
    expect(await run(harness, env)).toMatchObject({ code: 6 });
    expect(await harness.onlyRun()).toMatchObject({ halt: 'target_configuration' });
    expect(seen).toEqual([]);
  });

  test('is an outage if it was found before: the run goes on when it is found again', async ({ onTestFinished }) => {
    const { harness, seen, env } = await openNamed(onTestFinished);
    let missed = 0;
    answerNames(() => seen.length < 10 || ++missed > 3);
    const { code } = await run(harness, env);
    const { state, counts } = await harness.onlyRun();
    expect([code, state, counts.deleted]).toEqual([0, 'completed', ids.length]);
    expect(missed).toBeGreaterThan(3);
  });
});

describe.runIf(hasOpenssl())('an API behind TLS', () => {
  const read = ({ server, ca }: Certificates) => ({
    cert: readFileSync(server.cert),
    key: readFileSync(server.key),
    ca: readFileSync(ca),
  });
  const strict = { requestCert: true, rejectUnauthorized: true };
  const servers = {
    'that wants a certificate, TLS 1.3': (made) =>
      createHttpsServer({ ...read(made), ...strict, minVersion: 'TLSv1.3' }, (_, response) => {
        response.writeHead(204).end();
      }),
    'that wants a certificate, TLS 1.2': (made) =>
      createHttpsServer({ ...read(made), ...strict, maxVersion: 'TLSv1.2' }, (_, response) => {
        response.writeHead(204).end();
      }),
    'that wants a certificate, as nginx says it': (made) =>
      createHttpsServer({ ...read(made), requestCert: true, rejectUnauthorized: false }, (request, response) => {
        const { authorized } = request.socket as unknown as { authorized: boolean };
        const page = '<html>\r\n<head><title>400 No required SSL certificate was sent</title></head>\r\n</html>';
        if (authorized) response.writeHead(204).end();
        else response.writeHead(400, { 'content-type': 'text/html' }).end(page);
      }),
    'that speaks only HTTP/2': (made) => createSecureServer({ ...read(made), allowHTTP1: false }),
  } satisfies Record<string, (made: Certificates) => unknown>;
  const rows: [server: keyof typeof servers, words: RegExp][] = [
    ['that wants a certificate, TLS 1.3', /it wants a certificate from us/],
    ['that wants a certificate, TLS 1.2', /it breaks off the TLS handshake: perhaps it wants a certificate from us/],
    ['that wants a certificate, as nginx says it', /it wants a certificate from us/],
    ['that speaks only HTTP/2', /it speaks only HTTP\/2 on this port/],
  ];

  const openTls = async (atEnd: AtEnd, kind: keyof typeof servers) => {
    const made = makeCertificates(atEnd);
    const harness = await openHarness(atEnd);
    const url = await listen(atEnd, servers[kind](made) as unknown as Server, 'https');
    const identity = { EXPUNGE_CERT_FILE: made.client.cert, EXPUNGE_KEY_FILE: made.client.key };
    return { made, harness, identity, env: { EXPUNGE_BASE_URL: url, EXPUNGE_CA_FILE: made.ca } };
  };

  test.for(rows)('%s halts the run with exit 6, and no id is in doubt', async ([kind, words], { onTestFinished }) => {
    const { harness, env } = await openTls(onTestFinished, kind);
    const { code } = await run(harness, env);
    const { halt, reason } = await harness.onlyRun();
    expect([code, halt]).toEqual([6, 'target_configuration']);
    expect(reason).toMatch(words);
  });

  test.for(rows.slice(0, 3))('%s gets ours', async ([kind], { onTestFinished }) => {
    const { harness, env, identity } = await openTls(onTestFinished, kind);
    const summary = summaryIn(await run(harness, { ...env, ...identity }));
    expect(summary).toMatchObject({ state: 'completed', deleted: ids.length });
  });

  test('that wants a certificate is told from one that gets it through a proxy, too', async ({ onTestFinished }) => {
    const { harness, env, identity } = await openTls(onTestFinished, 'that wants a certificate, TLS 1.3');
    const proxy = await startProxy();
    onTestFinished(proxy.close);
    const through = { ...env, EXPUNGE_PROXY: `http://127.0.0.1:${proxy.port}` };
    expect(await run(harness, through)).toMatchObject({ code: 6 });
    expect(await harness.onlyRun()).toMatchObject({
      halt: 'target_configuration',
      reason: expect.stringContaining('it wants a certificate from us'),
    });
    const summary = summaryIn(await run(harness, { ...through, ...identity }));
    expect(summary).toMatchObject({ state: 'completed', deleted: ids.length });
  });

  test.for(rows.filter(([kind]) => !kind.includes('nginx')))(
    '%s is found out by the check, which sends nothing',
    async ([kind, words], { onTestFinished }) => {
      const { harness, env } = await openTls(onTestFinished, kind);
      const { code, stdout } = await harness.expunge(['check'], { env });
      expect(code).toBe(6);
      expect(stdout.replace(/\s+/g, ' ')).toMatch(words);
      if (kind.includes('certificate')) expect(stdout.replace(/\s+/g, ' ')).toMatch(/--cert-file .*--key-file/);
    },
  );

  test.for([
    [{ EXPUNGE_KEY_FILE: undefined }, /expected --cert-file and --key-file, got one of them/],
    [{ EXPUNGE_KEY_FILE: '/none' }, /--key-file \/none: not found/],
    [{ EXPUNGE_CERT_FILE: import.meta.filename }, /--cert-file \S+: expected certificates in PEM/],
    [{ EXPUNGE_KEY_FILE: import.meta.filename }, /--key-file \S+: expected the key of \S+ in PEM/],
  ] as [NodeJS.ProcessEnv, RegExp][])('refuses %j', async ([wrong, words], { onTestFinished }) => {
    const { harness, env, identity } = await openTls(onTestFinished, 'that wants a certificate, TLS 1.3');
    const { code, stderr } = await run(harness, { ...env, ...identity, ...wrong });
    expect([2, 5]).toContain(code);
    expect(stderr.replace(/\s+/g, ' ')).toMatch(words);
    expect(await harness.runs()).toEqual([]);
  });
});
