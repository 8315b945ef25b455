import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { runProgram, until } from '../../support/processes.ts';
import { startProxy, startRelay } from '../../support/relay.ts';
import { clientSecret, openTokenHarness } from '../../support/token-harness.ts';

const hasOpenssl = (await runProgram('openssl', ['version']).catch(() => null))?.code === 0;
if (!hasOpenssl) console.warn('skipped: https needs openssl to make a certificate');

describe.concurrent('client credentials', () => {
  test.for(['basic', 'post'] as const)(
    'get a token that the API takes (%s)',
    async (tokenAuth, { expect, onTestFinished }) => {
      const { open, useApi, sandbox } = await openTokenHarness(onTestFinished, { tokenLifeSeconds: 120 });
      const token = open({ tokenAuth });
      await token.start();
      expect(await useApi(token.authorization())).toBe(404);
      expect([token.lifeMs, token.waiting, token.refreshes, sandbox.counts.tokens]).toEqual([120_000, '', 0, 1]);
      expect(token.source).toBe(`${sandbox.tokenUrl} (client abc)`);
    },
  );

  test('with characters that a form must encode are understood', async ({ expect, onTestFinished }) => {
    const client = { id: 'a b:c/ü', secret: 'p+q&r=s %:ß' };
    for (const tokenAuth of ['basic', 'post'] as const) {
      const { open } = await openTokenHarness(onTestFinished, { client });
      const env = { EXPUNGE_CLIENT_SECRET: client.secret };
      const token = open(
        { tokenAuth, clientId: client.id, scope: 'delete:all x', tokenAudience: 'https://a/?b' },
        { env },
      );
      await token.start();
      expect(token.authorization()).toMatch(/^Bearer /);
    }
  });

  test('send scope and audience', async ({ expect, onTestFinished }) => {
    const { open } = await openTokenHarness(onTestFinished);
    const forms: string[] = [];
    const server = createServer(async (request, response) => {
      forms.push(String(Buffer.concat(await request.toArray())));
      response.end('{"access_token":"t","token_type":"bearer"}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const tokenUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/t?tenant=1`;
    const token = open({ tokenUrl, scope: 'a b', tokenAudience: 'https://api' });
    await token.start();
    expect(Object.fromEntries(new URLSearchParams(forms[0]))).toEqual({
      grant_type: 'client_credentials',
      scope: 'a b',
      audience: 'https://api',
    });
    expect([token.authorization(), token.lifeMs]).toEqual(['Bearer t', null]);
  });

  test('that are wrong are refused once and for good', async ({ expect, onTestFinished }) => {
    const { open, sandbox } = await openTokenHarness(onTestFinished);
    const token = open({ clientId: 'abd' });
    await expect(token.start()).rejects.toMatchObject({
      code: 'CREDENTIALS',
      message: expect.stringMatching(
        /^the token endpoint refused to give a token: 401 invalid_client; are --client-id,/,
      ),
    });
    expect(sandbox.seen).toHaveLength(1);
  });

  test('whose secret is replaced in its file go on with the new one', async ({ expect, onTestFinished }) => {
    const { open, file, sandbox } = await openTokenHarness(onTestFinished, { tokenLifeSeconds: 2 });
    const token = open({ clientSecretFile: file('secret', `${clientSecret}\n`) }, { env: {} });
    await token.start();
    (sandbox.client as { secret: string }).secret = 'another';
    file('secret', 'another');
    await until('there is another token', () => token.refreshes > 0);
    expect(token.authorization()).toMatch(/^Bearer /);
  });

  test('1,000 requests that are refused together, and 1,000 more later, make one request for a token', async ({
    expect,
    onTestFinished,
  }) => {
    const { open, useApi, sandbox } = await openTokenHarness(onTestFinished);
    const token = open();
    await token.start();
    const old = token.authorization()!;
    token.accepted(old, 0);
    sandbox.revokeTokens();
    sandbox.tokenFaults = { latencyMs: 100 };
    const statuses = await Promise.all(
      // What the others were answered is taken from these: a thousand connections at once would test this machine.
      Array.from({ length: 1_000 }, async (_, n) => [n < 50 ? await useApi(old) : 401, token.refused(old, '')]),
    );
    expect(new Set(statuses.map(String))).toEqual(new Set(['401,elsewhere', '401,again']));
    await until('it may be sent again', () => token.authorization());
    token.sent(old);
    expect(token.refused(old, '')).toBe('again');
    await until('there is another token', () => token.refreshes > 0);
    for (let i = 0; i < 1_000; i++) expect(token.refused(old, '')).toBe('again');
    expect(await useApi(token.authorization())).toBe(404);
    expect([sandbox.counts.tokens, token.refreshes]).toEqual([2, 1]);
  });

  test('without expires_in are used until they are refused', async ({ expect, onTestFinished }) => {
    const { open } = await openTokenHarness(onTestFinished, { tokenFaults: { answer: { expires_in: undefined } } });
    const token = open();
    await token.start();
    expect([token.lifeMs, token.authorization() === null]).toEqual([null, false]);
  });

  test.for<[string, Record<string, unknown>, RegExp]>([
    ['another type', { token_type: 'mac' }, /another type than Bearer/],
    ['no type', { token_type: undefined }, /another type than Bearer/],
    ['no token', { access_token: undefined }, /no token that can be used/],
    ['an empty token', { access_token: '' }, /no token that can be used/],
    ['a token with a newline', { access_token: 'canary\nx: y' }, /no token that can be used/],
    ['a token that is a number', { access_token: 5 }, /no token that can be used/],
    ['an error with status 200', { error: 'invalid_scope' }, /200 invalid_scope/],
  ])('that get %s are refused', async ([_, answer, words], { expect, onTestFinished }) => {
    const { open } = await openTokenHarness(onTestFinished, { tokenFaults: { answer } });
    const failure = await open()
      .start()
      .catch((error) => error);
    expect(failure).toMatchObject({ code: 'CREDENTIALS', message: expect.stringMatching(words) });
    expect(failure.message).not.toContain('canary');
  });

  test('take the type in any case', async ({ expect, onTestFinished }) => {
    const { open } = await openTokenHarness(onTestFinished, { tokenFaults: { answer: { token_type: 'BEARER' } } });
    const token = open();
    await token.start();
    expect(token.authorization()).toMatch(/^Bearer /);
  });
});

describe.concurrent('a token endpoint in trouble', () => {
  test.for([
    ['503', { status: 503 }, /^the token endpoint answers 503 \(temporarily_unavailable\)(; trying again in [12] s)?$/],
    ['429', { status: 429, retryAfterSeconds: 2 }, /^the token endpoint answers 429.*; trying again in 2 s$/],
    [
      'a redirect',
      { status: 302 },
      /redirects to \/elsewhere \(302\), which is not followed; is --token-url right\?; trying/,
    ],
    ['a body that is no token', { status: 201 }, /answers 201.*, but without a token; trying/],
  ] as const)(
    '(%s) is asked again later, and nothing is sent meanwhile',
    async ([_, fault, words], { expect, onTestFinished }) => {
      const { open, sandbox } = await openTokenHarness(onTestFinished, { tokenFaults: { ...fault, first: 1 } });
      const token = open();
      await token.start();
      expect([token.authorization(), token.waiting]).toEqual([null, expect.stringMatching(words)]);
      await new Promise<void>((resolve) => token.onChange(resolve));
      expect(token.authorization()).toMatch(/^Bearer /);
      expect(sandbox.seen).toEqual(['POST /oauth/token', 'POST /oauth/token']);
    },
  );

  test('that cannot be reached is asked again', async ({ expect, onTestFinished }) => {
    const { open } = await openTokenHarness(onTestFinished);
    const token = open({ tokenUrl: 'http://127.0.0.1:9/token' });
    await token.start();
    expect(token.waiting).toMatch(
      /^the token endpoint cannot be reached \(connection refused\); trying again in [12] s$/,
    );
  });

  test('that is slow does not stop the old token from being used', async ({ expect, onTestFinished }) => {
    const { open, useApi, sandbox } = await openTokenHarness(onTestFinished, { tokenLifeSeconds: 4 });
    const token = open({}, { random: () => 0 });
    await token.start();
    const first = token.authorization();
    sandbox.tokenFaults = { latencyMs: 500 };
    await until('it is asked', () => sandbox.seen.length === 2, 10_000);
    expect([token.authorization(), await useApi(first)]).toEqual([first, 404]);
    await until('there is another one', () => token.authorization() !== first);
    expect(await useApi(token.authorization())).toBe(404);
  });

  test('that answers endlessly is given up on', async ({ expect, onTestFinished }) => {
    const { open } = await openTokenHarness(onTestFinished);
    const server = createServer((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      };
      response.on('drain', more);
      more();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const token = open({ tokenUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
    await token.start();
    expect(token.waiting).toContain('the token endpoint cannot be reached (its answer is too long)');
  });

  test('that gives no token any more to this client halts the runs', async ({ expect, onTestFinished }) => {
    const { open, sandbox } = await openTokenHarness(onTestFinished, { tokenLifeSeconds: 2 });
    const token = open();
    await token.start();
    sandbox.tokenFaults = { status: 400, error: 'unauthorized_client' };
    const reason = await new Promise((resolve) => token.onRefused(resolve));
    expect(reason).toBe('the token endpoint refused to give a token: 400 unauthorized_client');
    expect([token.authorization(), token.waiting, token.refused('Bearer x', '')]).toEqual([
      null,
      reason,
      { halt: reason },
    ]);
  });

  test('is left alone when the token is closed, at once', async ({ expect, onTestFinished }) => {
    const { open, sandbox } = await openTokenHarness(onTestFinished, { tokenFaults: { latencyMs: 3_600_000 } });
    const token = open();
    const started = token.start();
    await until('it is asked', () => sandbox.seen.length === 1);
    await token.close(); // else it would be answered in an hour
    await started;
    expect(token.authorization()).toBeNull();
  });
});

describe.concurrent('a server that keeps one live token', () => {
  test('is named by one of two processes that take it from each other', async ({ expect, onTestFinished }) => {
    const { open, useApi, sandbox } = await openTokenHarness(onTestFinished, { oneLiveToken: true });
    const tokens = [open(), open()];
    let halted = '';
    const use = async (token: (typeof tokens)[number]) => {
      await token.start();
      while (halted === '') {
        const header = token.authorization();
        if (header === null) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        token.sent(header);
        if ((await useApi(header)) !== 401) token.accepted(header, 0);
        else {
          const end = token.refused(header, '');
          if (typeof end !== 'string') halted = end.halt;
        }
      }
    };
    await Promise.all(tokens.map(use));
    expect(halted).toMatch(/seems to keep only one live token per client: another process took one; give each process/);
    expect(sandbox.counts.tokens).toBeLessThan(10);
  });

  test('is no trouble for one process, however busy', async ({ expect, onTestFinished }) => {
    const { open, useApi } = await openTokenHarness(onTestFinished, { oneLiveToken: true, tokenLifeSeconds: 2 });
    const token = open();
    await token.start();
    const ends = new Set<unknown>();
    const use = async () => {
      while (token.refreshes < 2) {
        const header = token.authorization();
        if (header === null) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        token.sent(header);
        if ((await useApi(header)) === 401) ends.add(token.refused(header, ''));
        else token.accepted(header, 0);
      }
    };
    await Promise.all(Array.from({ length: 8 }, use));
    expect([...ends].filter((end) => typeof end !== 'string')).toEqual([]);
  });
});

describe.concurrent('the way to the token endpoint', () => {
  test('is the proxy, if there is one', async ({ expect, onTestFinished }) => {
    const { open } = await openTokenHarness(onTestFinished);
    const proxy = await startProxy();
    onTestFinished(() => proxy.close());
    const token = open({ proxy: `http://127.0.0.1:${proxy.port}` });
    await token.start();
    expect(token.authorization()).toMatch(/^Bearer /);
    expect(proxy.connections).toBe(1);
  });

  test.skipIf(!hasOpenssl)('is trusted by the certificates of --ca-file only', async ({ expect, onTestFinished }) => {
    const { open, sandbox, folder } = await openTokenHarness(onTestFinished);
    const { key, cert } = await makeCertificate(folder);
    const relay = await startRelay(sandbox.url, { key, cert });
    onTestFinished(() => relay.close());
    const tokenUrl = `https://127.0.0.1:${relay.port}/oauth/token`;
    const trusting = open({ tokenUrl }, { ca: cert });
    await trusting.start();
    expect(trusting.authorization()).toMatch(/^Bearer /);
    const other = open({ tokenUrl });
    await other.start();
    expect([other.authorization(), other.waiting]).toEqual([
      null,
      expect.stringMatching(/cannot be reached \(its certificate is signed by an authority that is not trusted here\)/),
    ]);
    expect(sandbox.counts.tokens).toBe(1);
  });
});

async function makeCertificate(cwd: string): Promise<{ key: string; cert: string }> {
  const files = ['-keyout', 'key.pem', '-out', 'cert.pem'];
  const subject = ['-subj', '/CN=expunge-test', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  await runProgram('openssl', ['req', '-x509', ...key, ...files, ...subject], { cwd });
  return { key: readFileSync(join(cwd, 'key.pem'), 'utf8'), cert: readFileSync(join(cwd, 'cert.pem'), 'utf8') };
}
