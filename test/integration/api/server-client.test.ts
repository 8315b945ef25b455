import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { withServer } from '../../../src/api/client.ts';
import type { Command } from '../../../src/commands/command.ts';
import { commands } from '../../../src/commands/line/commands.ts';
import { readVersion } from '../../../src/version.ts';
import { command } from '../../support/command.ts';
import { startExpunge } from '../../support/processes.ts';
import { hasOpenssl, makeCertificates } from '../../support/tls.ts';

const token = 'server-token-0123456789';
const type = { 'content-type': 'application/json' };
const me = JSON.stringify({ name: 'ana', role: 'read', version: readVersion() });

/** A server that is none of ours, and the requests that came. */
async function openServer(answer: RequestListener, tls?: { key: string; cert: string }) {
  const seen: IncomingMessage[] = [];
  const listen: RequestListener = (request, response) => {
    seen.push(request);
    answer(request, response);
  };
  const server = tls ? createTlsServer(tls, listen) : createServer(listen);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const runs = (url: string, env: NodeJS.ProcessEnv = { EXPUNGE_SERVER_TOKEN: token }) =>
  command(['runs', '--server', url], { env: { REDIS_URL: 'redis://127.0.0.1:1', ...env } });

describe('the client of a server', () => {
  test('says that nothing answers there, and exits with 6', async () => {
    expect(await runs('http://127.0.0.1:1')).toMatchObject({
      code: 6,
      stdout: '',
      stderr: expect.stringContaining('cannot be reached: connection refused'),
    });
  });

  test('says that a server is silent, and that an action may have been carried out nevertheless', async () => {
    const { url } = await openServer(({ method }, response) => {
      if (method === 'GET') response.writeHead(200, type).end(me);
    });
    const config = { server: url, serverTokenFile: undefined };
    const action = { method: 'POST', path: '/runs/r/pause', body: {}, isLong: true } as const;
    const waiting = withServer(
      { config, env: { EXPUNGE_SERVER_TOKEN: token } },
      () => {},
      (api) => api.json(action),
      { answer: 60_000, longAnswer: 50 },
    );
    await expect(waiting).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining('no answer in time'),
      next: expect.stringContaining('the server may already have done this'),
    });
  });

  test('says of an action that is being done for too long that it may have been carried out', async () => {
    const { url, seen } = await openServer(({ method }, response) => {
      if (method === 'GET') return response.writeHead(200, type).end(me);
      const problem = { detail: 'it is being done; it makes run r', code: 'conflict', seconds: 3_600 };
      response.writeHead(409, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
    });
    const config = { server: url, serverTokenFile: undefined };
    const env = { EXPUNGE_SERVER_TOKEN: token };
    const timeouts = { answer: 60_000, longAnswer: 2_000 };
    const waiting = withServer(
      { config, env },
      () => {},
      (api) => api.create('/runs/r/retry', {}),
      timeouts,
    );
    await expect(waiting).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining('it makes run r'),
      next: expect.stringContaining('the server may already have done this'),
    });
    const actions = seen.filter(({ method }) => method === 'POST').map(({ headers }) => headers['idempotency-key']);
    expect(actions).toEqual([expect.any(String), actions[0]]); // once more, when its time is over
  });

  test('takes an answer that breaks off for none', async () => {
    const { url } = await openServer((_, response) => {
      response.writeHead(200, { ...type, 'content-length': '1000' }).write(me, () => response.destroy());
    });
    expect(await runs(url)).toMatchObject({ code: 6, stdout: '' });
  });

  test('sends nothing without a token, and exits with 5', async () => {
    const { url, seen } = await openServer((_, response) => response.end());
    const none = await runs(url, {});
    expect(none).toMatchObject({ code: 5, stderr: expect.stringContaining('EXPUNGE_SERVER_TOKEN') });
    expect(await runs(url, { EXPUNGE_SERVER_TOKEN_FILE: '/nowhere/token' })).toMatchObject({ code: 5 });
    expect(seen).toEqual([]);
  });

  test('never sends the token over http beyond this machine, or where certificates are not checked', async () => {
    const plain = await runs('http://ops.example.com');
    expect(plain).toMatchObject({ code: 2, stderr: expect.stringContaining('read the token') });
    const { url, seen } = await openServer((_, response) => response.end());
    const unchecked = { EXPUNGE_SERVER_TOKEN: token, NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    expect(await runs(url, unchecked)).toMatchObject({ code: 2 });
    expect(seen).toEqual([]);
  });

  test('refuses an address with a password, and shows neither', async () => {
    const done = await runs('https://ana:hidden@ops.example.com');
    expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot hold a user name or password') });
    expect(done.stderr).not.toContain('hidden');
  });

  test.skipIf(!hasOpenssl())('does not trust a certificate that nobody vouches for, and says how to', async () => {
    const { key, cert } = makeCertificates(onTestFinished).server;
    const tls = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
    const { url, seen } = await openServer((_, response) => response.end(), tls);
    const done = await runs(url);
    expect(done).toMatchObject({ code: 6, stderr: expect.stringContaining('NODE_EXTRA_CA_CERTS') });
    expect(seen).toEqual([]);
  });

  test.skipIf(!hasOpenssl())('works over https with an authority that the environment names', async () => {
    const { ca, server } = makeCertificates(onTestFinished);
    const tls = { key: readFileSync(server.key, 'utf8'), cert: readFileSync(server.cert, 'utf8') };
    const list = JSON.stringify({ items: [], next: null });
    const { url, seen } = await openServer(
      ({ url: path }, response) => response.writeHead(200, type).end(path!.endsWith('/me') ? me : list),
      tls,
    );
    const env = { EXPUNGE_SERVER: `${url}/behind/a/proxy/`, EXPUNGE_SERVER_TOKEN: token, NODE_EXTRA_CA_CERTS: ca };
    const running = startExpunge(['runs'], { REDIS_URL: 'redis://127.0.0.1:1', ...env });
    const { code } = await running.ended;
    expect([code, running.stdout], running.stderr).toEqual([0, expect.stringContaining('No runs in https://')]);
    expect(seen.map(({ url: path }) => path)).toEqual([
      '/behind/a/proxy/api/v1/me',
      '/behind/a/proxy/api/v1/runs?limit=51',
    ]);
    expect(new Set(seen.map(({ headers }) => headers.authorization))).toEqual(new Set([`Bearer ${token}`]));
  });

  test('follows no redirect: the token goes nowhere else', async () => {
    const elsewhere = await openServer((_, response) => response.writeHead(200, type).end(me));
    const { url } = await openServer((_, response) => response.writeHead(302, { location: elsewhere.url }).end());
    const done = await runs(url);
    expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining(`redirects to ${elsewhere.url}`) });
    expect(elsewhere.seen).toEqual([]);
  });

  test.each([
    ['another version', type, JSON.stringify({ name: 'ana', role: 'admin', version: '9.9.9' }), 'is expunge 9.9.9'],
    ['something else', { 'content-type': 'text/html' }, '<html>', 'no API of expunge is at'],
    ['another API', type, '{"name":"x"}', 'no API of expunge is at'],
    ['no JSON', type, '{', 'no API of expunge is at'],
  ])('goes no further where %s answers', async (_, headers, body, words) => {
    const { url, seen } = await openServer((_, response) => response.writeHead(200, headers).end(body));
    expect(await runs(url)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
    expect(seen).toHaveLength(1);
  });

  test.each([
    [401, 'unauthenticated', 5],
    [403, 'forbidden', 5],
    [404, 'not_found', 2],
    [409, 'guard', 4],
    [422, 'usage', 2],
    [500, 'internal', 1],
    [503, 'unreachable', 6],
    [503, 'unavailable', 6],
  ])(
    'tells a problem %i %s as a command does, without the token and control characters',
    async (status, code, exit) => {
      const { url } = await openServer(({ headers }, response) => {
        const detail = `it says ${headers.authorization}\u001b[2J`;
        const body = JSON.stringify({ type: 'about:blank', title: 'x', status, detail, code });
        response.writeHead(status, { 'content-type': 'application/problem+json' }).end(body);
      });
      const done = await runs(url);
      expect(done).toMatchObject({ code: exit, stderr: expect.stringMatching(/^error: it says Bearer \*\*\*/) });
      expect(done.stderr).not.toContain(token);
      expect(done.stderr).not.toContain('\u001b');
    },
  );

  test('takes an answer of a proxy in between for what it is', async () => {
    const { url } = await openServer((_, response) =>
      response.writeHead(502, { 'content-type': 'text/html' }).end('x'),
    );
    expect(await runs(url)).toMatchObject({ code: 6, stderr: expect.stringContaining('(502)') });
  });
});

/** Commands and their subcommands, as they are typed. */
function typed(commands: readonly Command[], before: readonly string[] = []): (readonly [string[], Command])[] {
  return commands.flatMap((one) => {
    const words = [...before, one.name];
    const own = one.load === null ? [] : [[words, one] as const];
    return [...own, ...typed(one.subcommands ?? [], words)];
  });
}

describe('a command that needs Redis itself', () => {
  const needing = typed(commands).filter(
    ([, { settings }]) => settings.includes('allowPlaintextRedis') && !settings.includes('server'),
  );

  test('is every one that does not say how a server does it', () => {
    const able = typed(commands).filter(([, { overServer }]) => overServer !== undefined);
    expect(able.every(([, { settings }]) => settings.includes('server'))).toBe(true);
    expect(needing.map(([words]) => words.join(' '))).toContain('worker');
  });

  test.each(needing.map(([words, command]) => [words.join(' '), words, command] as const))(
    'says so, and nothing happens: %s',
    async (_, words, { arguments: wanted = '' }) => {
      const { url, seen } = await openServer((_, response) => response.end());
      const args = (wanted.match(/<[^>]*>/g) ?? []).map(() => 'x');
      const env = { EXPUNGE_SERVER: url, EXPUNGE_SERVER_TOKEN: token, EXPUNGE_STATE_DIR: '/nowhere/state' };
      const done = await command([...words, ...args], { env });
      expect(done).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('needs Redis itself') });
      expect(seen).toEqual([]);
      const flagged = await command([...words, ...args, '--server', url], { env: {} });
      expect(flagged).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be done over a server') });
    },
  );
});
