import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { hostname } from 'node:os';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { routes } from '../../../src/api/app.ts';
import { revokeToken } from '../../../src/api/token-store.ts';
import { type Role, roles } from '../../../src/model/role.ts';
import { openApi } from '../../support/api.ts';
import { until } from '../../support/processes.ts';
import { redisContent } from '../../support/redis-content.ts';

const enough: Record<Role, readonly (Role | null)[]> = {
  read: ['read', 'plan', 'operate', 'admin'],
  plan: ['plan', 'operate', 'admin'],
  operate: ['operate', 'admin'],
  admin: ['admin'],
};

/** A path that leads nowhere, so that an allowed request changes nothing either. */
function pathOf(template: string): string {
  return template.replace(/\{\w+\}/g, '0000000000000000');
}

describe('access', () => {
  /**
   * @invariant roles-and-targets: Over HTTP no one does what their role does not allow, whatever they send. A token that is bound to a
   * target reaches no other target. All viewers together cost Redis one reading.
   */
  test('is as the table of routes says, for each route, each role and nobody', async () => {
    const api = await openApi(onTestFinished);
    await Promise.all(roles.map((role) => api.token(role)));
    const before = await redisContent(api.redis);
    const wrong: string[] = [];
    for (const { method, path, role: needed, types } of routes) {
      for (const role of [null, ...roles]) {
        if (types.includes('text/event-stream') && role !== null) continue;
        const isAllowed = enough[needed].includes(role);
        const options = { method: method.toUpperCase(), ...(method === 'post' && !isAllowed && { body: {} }) };
        const { status, body } = await api.call(role, pathOf(path), options);
        const expected = isAllowed
          ? ![401, 403].includes(status) && status < 500
          : status === (role === null ? 401 : 403);
        if (!expected || (status >= 400 && body.status !== status)) wrong.push(`${role} ${method} ${path}: ${status}`);
      }
    }
    expect(wrong, api.server.stderr).toEqual([]);
    expect(await redisContent(api.redis)).toBe(before);
  });

  test('without a login is to the login page and the files of the pages only', async () => {
    const { call, url } = await openApi(onTestFinished);
    for (const path of ['//', '//runs/some', '//anything']) {
      const { status, headers } = await call(null, path);
      expect([path, status, headers.get('location')]).toEqual([
        path,
        303,
        path === '//' ? '/login' : `/login?to=${encodeURIComponent(path.slice(1))}`,
      ]);
    }
    expect((await call(null, '/openapi.json')).status).toBe(401);
    expect((await call(null, '/nothing')).status).toBe(401);
    expect((await call(null, '/me')).body.detail).toBe('expected a token or a session, got none');
    const detailFor = async (headers: Record<string, string>) => (await call(null, '/me', { headers })).body.detail;
    expect(await detailFor({ authorization: 'Bearer mistyped' })).toMatch(/^this server does not know the token/);
    expect(await detailFor({ cookie: `expunge_session_${new URL(url).port}=old` })).toBe('the session has ended');
    expect((await call('read', '/nothing')).status).toBe(404);
    expect((await call(null, '//login')).status).toBe(200);
  });

  test('ends with the token, for its sessions and its streams, too', async () => {
    const { call, token, url, redis } = await openApi(onTestFinished);
    const form = new URLSearchParams({ token: await token('operate') });
    const login = await call(null, '//login', { method: 'POST', raw: form });
    expect(login.status).toBe(303);
    const cookie = login.headers.get('set-cookie')!.split(';')[0]!;
    const me = () => call(null, '/me', { headers: { cookie } });
    expect((await me()).body).toMatchObject({ name: 'test-operate', role: 'operate' });
    const stream = await fetch(`${url}/api/v1/events`, { headers: { cookie } });
    const ended = (async () => {
      for await (const _ of stream.body!);
      return true;
    })().catch(() => true);
    expect(await revokeToken(redis, 'test-operate', 'test', Date.now())).toBe(true);
    expect((await me()).status).toBe(401);
    expect((await call('operate', '/me')).status).toBe(401);
    expect(await ended).toBe(true);
  });

  test('is refused after ten wrong tokens from one address, also with the right one, and says how long', async () => {
    const { call, token } = await openApi(onTestFinished);
    const login = (value: string) =>
      call(null, '//login', { method: 'POST', raw: new URLSearchParams({ token: value }) });
    for (let n = 0; n < 10; n++) expect((await login(`wrong-${n}`)).status).toBe(401);
    const refused = await login(await token('read'));
    expect(refused).toMatchObject({ status: 429, body: { code: 'too_many' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(200);
    expect((await call('read', '/me')).status).toBe(200);
  });

  test('by a cookie is for pages of this server only: a POST of another site changes nothing', async () => {
    const { call, token, url } = await openApi(onTestFinished);
    const login = await call(null, '//login', {
      method: 'POST',
      raw: new URLSearchParams({ token: await token('admin') }),
    });
    const cookie = login.headers.get('set-cookie')!.split(';')[0]!;
    const post = (headers: Record<string, string>) =>
      call(null, '/runs/x/pause', { method: 'POST', body: {}, headers: { cookie, ...headers } });
    const others = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example.com' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example.com' },
      {},
    ];
    for (const headers of others) expect((await post(headers)).body).toMatchObject({ status: 403, code: 'cross_site' });
    expect((await post({ 'sec-fetch-site': 'same-origin', origin: url })).status).toBe(404); // it is looked for
    const stolen = new URLSearchParams({ token: await token('admin') });
    const forced = await call(null, '//login', {
      method: 'POST',
      raw: stolen,
      headers: { origin: 'https://evil.example.com' },
    });
    expect(forced.status).toBe(403);
  });

  test('keeps tokens and sessions out of Redis, logs and problems', async () => {
    const api = await openApi(onTestFinished);
    const { call, token, harness } = api;
    const secret = await token('admin');
    const login = await call(null, '//login', { method: 'POST', raw: new URLSearchParams({ token: secret }) });
    const cookie = /expunge_session_\d+=([\w-]+)/.exec(login.headers.get('set-cookie')!)![1]!;
    const wrong = 'expunge_wrong-canary-5511';
    const problems = [
      await call(null, '/me', { headers: { authorization: `Bearer ${wrong}` } }),
      await call(null, '//login', { method: 'POST', raw: new URLSearchParams({ token: wrong }) }),
      await call(null, '//login?once=wrong-canary-5512'),
    ];
    const values = await Promise.all((await api.redis.keys('*')).map((key) => api.redis.dumpBuffer(key)));
    const names = await api.redis.keys('*');
    const stored = [...names, ...values.map((value) => value?.toString('latin1'))].join('\n');
    const told = [...problems.map(({ text }) => text), api.server.stderr].join('\n');
    for (const canary of [secret, cookie, 'wrong-canary', harness.sandbox.token]) {
      expect(stored).not.toContain(canary);
      expect(told).not.toContain(canary);
    }
  });
});

describe('while Redis hangs', () => {
  test('requests are answered that it does, probes go on, and so do requests once it is back', async () => {
    const { call, token, redisPid } = await openApi(onTestFinished, { args: ['worker', '--http', '0'] });
    await token('read');
    process.kill(redisPid, 'SIGSTOP');
    const away = await call('read', '/overview');
    expect(away.body).toMatchObject({ status: 503, code: 'unavailable' });
    expect((await call(null, '//healthz')).status).toBe(200);
    process.kill(redisPid, 'SIGCONT');
    await until('it answers again', async () => (await call('read', '/overview')).status === 200);
  });
});

/** The status of an answer to a GET with these headers, Host included. */
async function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  return (await answerOf(url, headers)).status;
}

/** An answer to a request with these headers, Host included; a POST has an empty object as its body. */
async function answerOf(url: string, headers: Record<string, string>, method = 'GET') {
  const sent = request(url, { method, headers: { ...headers, 'content-type': 'application/json' }, agent: false });
  const [answer] = (await once(sent.end(method === 'POST' ? '{}' : ''), 'response')) as [IncomingMessage];
  return { status: answer.statusCode!, text: await textOf(answer) };
}

describe('worker --http', () => {
  const trusting = { EXPUNGE_TRUST_PROXY_USER: 'X-User', EXPUNGE_TRUST_PROXY_FROM: '127.0.0.0/8' };
  const proxied = { ...trusting, EXPUNGE_TRUST_PROXY_ROLE: 'operate' };
  const worker = async (http: string, env: NodeJS.ProcessEnv = {}) =>
    openApi(onTestFinished, { args: ['worker', '--http', http], env });

  test('serves the same beside its probes, and believes a proxy that it trusts', async () => {
    const { call } = await worker('0', proxied);
    expect((await call(null, '/me', { headers: { 'x-user': 'ana' } })).body).toMatchObject({
      name: 'ana',
      role: 'operate',
    });
    expect((await call(null, '/me')).status).toBe(401);
    expect((await call(null, '/runs/x/pause', { method: 'POST', body: {}, headers: { 'x-user': 'ana' } })).status).toBe(
      403,
    );
    expect((await call(null, '//metrics')).status).toBe(200);
    const here = await until('it is a worker', async () => (await call('read', '/overview')).body.workers[0]);
    expect(here).toMatchObject({ process: expect.stringMatching(`^${hostname()}-`), connections: null }); // it has no ids to send
  });

  test('does not believe a proxy on this machine for the name of another site, unless it is stated', async () => {
    const { url } = await worker('0', proxied);
    const me = (host: string) => statusOf(`${url}/api/v1/me`, { host, 'x-user': 'ana' });
    expect(await me('evil.example.com')).toBe(403);
    expect(
      JSON.parse((await answerOf(`${url}/api/v1/me`, { host: 'evil.example.com', 'x-user': 'ana' })).text),
    ).toMatchObject({
      code: 'wrong_host',
      title: 'this server does not answer under that name',
    });
    expect(await me('localhost:9464')).toBe(200);
    const stated = await worker('0', { ...proxied, EXPUNGE_TRUST_PROXY_HOST: 'expunge.example.com' });
    const other = (host: string) => statusOf(`${stated.url}/api/v1/me`, { host, 'x-user': 'ana' });
    expect([await other('expunge.example.com'), await other('evil.example.com')]).toEqual([200, 403]);
  });

  test('tells a proxy of which no name is stated what also lets its people take actions', async () => {
    const host = 'expunge.example.com';
    const browser = { 'x-user': 'ana', 'sec-fetch-site': 'same-origin', origin: `https://${host}` };
    const pauseAt = (url: string, host: string) => answerOf(`${url}/api/v1/runs/x/pause`, { ...browser, host }, 'POST');
    const { url } = await worker('0', proxied);
    const { status, text } = await pauseAt(url, host);
    expect([status, JSON.parse(text).next]).toEqual([403, expect.stringContaining('EXPUNGE_TRUST_PROXY_HOST')]);
    expect((await pauseAt(url, 'localhost')).text).toContain('cross_site'); // a Host that people did not open
    expect(JSON.parse(text).next).not.toContain('localhost');
    const stated = await worker('0', { ...proxied, EXPUNGE_TRUST_PROXY_HOST: host });
    expect((await pauseAt(stated.url, host)).status).toBe(404); // it is looked for
  });

  test('counts failed logins behind a proxy by person, and nobody else is locked out', async () => {
    const { call, token } = await worker('0', proxied);
    const login = (value: string, by: string) =>
      call(null, '//login', {
        method: 'POST',
        raw: new URLSearchParams({ token: value }),
        headers: { 'x-forwarded-for': by },
      });
    for (let n = 0; n < 10; n++) expect((await login('wrong', `192.0.2.${n}, 203.0.113.9`)).status).toBe(401);
    expect((await login('wrong', '203.0.113.9')).status).toBe(429);
    expect((await login(await token('read'), '198.51.100.4')).status).toBe(303);
  });

  test('takes a role from the groups that a proxy names: the highest, and none where nobody knows them', async () => {
    const groups = {
      EXPUNGE_TRUST_PROXY_GROUPS: 'X-Groups',
      EXPUNGE_TRUST_PROXY_GROUP_ROLES: 'db admins=admin,sre=operate',
    };
    const { call } = await worker('0', { ...trusting, ...groups });
    const me = (named: string) => call(null, '/me', { headers: { 'x-user': 'ana', 'x-groups': named } });
    expect((await me('all, sre')).body).toMatchObject({ name: 'ana', role: 'operate' });
    expect((await me('sre,db admins')).body).toMatchObject({ role: 'admin' });
    const stranger = await me('all,admins,SRE,sre=operate');
    expect([stranger.status, stranger.body.detail]).toEqual([
      403,
      expect.stringMatching(/ana is in no group.*X-Groups/),
    ]);
    expect((await call(null, '/me', { headers: { 'x-user': 'ana' } })).status).toBe(403);
    expect((await call(null, '/me', { headers: { 'x-groups': 'sre' } })).status).toBe(401);
    const withDefault = await worker('0', { ...trusting, EXPUNGE_TRUST_PROXY_ROLE: 'read', ...groups });
    const by = (named: string) => withDefault.call(null, '/me', { headers: { 'x-user': 'ana', 'x-groups': named } });
    expect([(await by('all')).body.role, (await by('sre')).body.role]).toEqual(['read', 'operate']);
  });

  test('says what is wrong with roles of groups', async () => {
    const { harness } = await openApi(onTestFinished);
    for (const more of [
      { EXPUNGE_TRUST_PROXY_GROUPS: 'X-Groups' },
      { EXPUNGE_TRUST_PROXY_GROUP_ROLES: 'sre=operate' },
      { EXPUNGE_TRUST_PROXY_GROUPS: 'X-Groups', EXPUNGE_TRUST_PROXY_GROUP_ROLES: 'sre=root' },
    ]) {
      const { code, stderr } = await harness.expunge(['worker', '--http', '0'], { env: { ...proxied, ...more } });
      expect([code, stderr]).toEqual([2, expect.stringContaining('EXPUNGE_TRUST_PROXY_GROUP_ROLES')]);
    }
  });

  test('does not believe the header from elsewhere', async () => {
    const { call } = await worker('0', { ...trusting, EXPUNGE_TRUST_PROXY_FROM: '10.0.0.7' });
    expect((await call(null, '/me', { headers: { 'x-user': 'ana' } })).status).toBe(401);
  });

  test('beyond this machine answers probes only, and metrics to a token, or to all with EXPUNGE_OPEN_METRICS', async () => {
    const closed = await worker('0.0.0.0:0');
    expect((await closed.call(null, '//healthz')).status).toBe(200);
    expect((await closed.call(null, '//readyz')).status).toBe(200);
    expect((await closed.call(null, '//metrics')).status).toBe(401);
    expect((await closed.call('read', '//metrics')).status).toBe(200);
    expect((await closed.call(null, '/overview')).status).toBe(401);
    const open = await worker('0.0.0.0:0', { EXPUNGE_OPEN_METRICS: 'true' });
    expect((await open.call(null, '//metrics')).status).toBe(200);
  });

  test('on this machine answers metrics to everybody, but not to a page whose own name leads here', async () => {
    const { url, token } = await worker('0');
    const scrape = (host: string, more = {}) => statusOf(`${url}/metrics`, { host, ...more });
    const authorization = `Bearer ${await token('read')}`;
    for (const host of ['evil.example.com', 'localhost.example.com', '127.0.0.1.example.com:9464']) {
      expect([host, await scrape(host)]).toEqual([host, 401]);
      expect([host, await scrape(host, { authorization })]).toEqual([host, 200]);
    }
    for (const host of [new URL(url).host, 'localhost:9464', '[::1]:9464']) expect(await scrape(host)).toBe(200);
    const open = await worker('0', { EXPUNGE_OPEN_METRICS: 'true' });
    expect(await statusOf(`${open.url}/metrics`, { host: 'worker.example.com' })).toBe(200);
  });

  test('says what is missing where a proxy is trusted without an address', async () => {
    const { harness } = await openApi(onTestFinished);
    const { code, stderr } = await harness.expunge(['worker', '--http', '0'], {
      env: { EXPUNGE_TRUST_PROXY_USER: 'X-User' },
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining('EXPUNGE_TRUST_PROXY_FROM')]);
  });
});

describe('expunge token', () => {
  test('makes a token that works at once, lists names only, and revokes it', async () => {
    const { harness, call } = await openApi(onTestFinished);
    const made = await harness.expunge(['token', 'add', 'ana', '--role', 'operate', '--expires', '1h', '--json']);
    const { token, ...facts } = JSON.parse(made.stdout);
    expect(facts).toMatchObject({ type: 'token', name: 'ana', role: 'operate', expires_at: expect.any(String) });
    const me = () => call(null, '/me', { headers: { authorization: `Bearer ${token}` } });
    expect((await me()).body).toMatchObject({ name: 'ana', role: 'operate' });
    expect((await harness.expunge(['token', 'add', 'ana'])).code).toBe(2);
    const { stdout } = await harness.expunge(['token', 'list']);
    expect(stdout).toMatch(/ana +operate/);
    expect(stdout).not.toContain(token);
    expect((await harness.expunge(['token', 'revoke', 'ana'])).code).toBe(0);
    expect((await me()).status).toBe(401);
    expect((await harness.expunge(['token', 'revoke', 'ana'])).code).toBe(2);
  });
});
