import { describe, expect, onTestFinished, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { type Api, openApi } from '../../support/api.ts';
import { type Running, until } from '../../support/processes.ts';

/** The path of the link that a dashboard printed, for `call`. */
function linkOf({ stdout }: Running): string {
  return `/${/\/login\?once=\S+/.exec(stdout)![0]}`;
}

/** The cookie that an answer sets, as a browser sends it. */
function cookieOf({ headers }: { headers: Headers }): string {
  return headers.get('set-cookie')?.split(';')[0] ?? '';
}

/** The status of GET /me with these cookies. */
async function statusAt(url: string, cookie: string): Promise<number> {
  return (await fetch(`${url}/api/v1/me`, { headers: { cookie } })).status;
}

/** Another server on the same Redis, which it has reached. */
async function openOther({ harness }: Api, command: 'dashboard' | 'worker') {
  const args = command === 'worker' ? ['worker', '--http', '0'] : ['dashboard', '--port', '0'];
  const server = harness.start(args);
  const url = await until('it listens', () => /http:\/\/[\d.]+:\d+/.exec(server.stdout + server.stderr)?.[0]);
  const headers = { authorization: 'Bearer nobody' }; // only Redis can tell that nobody has this token
  await until('it has reached Redis', async () => (await fetch(`${url}/api/v1/me`, { headers })).status === 401);
  return { server, url };
}

describe('the link of a dashboard', () => {
  test('logs in once, at that dashboard only: Redis knows nothing of it, and no other server believes it', async () => {
    const api = await openApi(onTestFinished);
    const { server, redis, call, url } = api;
    const cookie = cookieOf(await call(null, linkOf(server)));
    expect((await call(null, '/me', { headers: { cookie } })).body).toMatchObject({ role: 'admin' });
    expect((await call(null, linkOf(server))).headers.get('location')).toBe('/login?problem=link');
    expect(await redis.keys(keys.apiSession('*'))).toEqual([]);
    for (const command of ['dashboard', 'worker'] as const) {
      const other = await openOther(api, command);
      const renamed = cookie.replace(new URL(url).port, new URL(other.url).port);
      expect([command, await statusAt(other.url, `${cookie}; ${renamed}`)]).toEqual([command, 401]);
    }
  });

  test('logs in also while Redis hangs, and is not used up by that', async () => {
    const { server, call, redisPid } = await openApi(onTestFinished);
    process.kill(redisPid, 'SIGSTOP');
    const answer = await call(null, linkOf(server));
    process.kill(redisPid, 'SIGCONT');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/']);
    expect((await call(null, '/me', { headers: { cookie: cookieOf(answer) } })).status).toBe(200);
  });

  test('locks nobody out when wrong ones are sent, which a page of any site can do', async () => {
    const { server, call, token } = await openApi(onTestFinished);
    const headers = { 'sec-fetch-site': 'cross-site' };
    for (let n = 0; n < 12; n++) {
      const wrong = await call(null, `//login?once=wrong-${n}`, { headers });
      expect([wrong.status, wrong.headers.get('location')]).toEqual([303, '/login?problem=link']);
    }
    const login = await call(null, '//login', {
      method: 'POST',
      raw: new URLSearchParams({ token: await token('read') }),
    });
    expect(login.headers.get('location')).toBe('/');
    expect((await call(null, linkOf(server))).headers.get('location')).toBe('/');
  });

  test('is not used up by a program that looks at it with HEAD', async () => {
    const { server, call } = await openApi(onTestFinished);
    const looked = await call(null, linkOf(server), { method: 'HEAD' });
    expect([looked.status, looked.headers.get('set-cookie')]).toEqual([200, null]);
    expect((await call(null, linkOf(server))).headers.get('location')).toBe('/');
  });
});

describe('two dashboards in one browser', () => {
  test('do not log each other out, although a browser sends the cookies of a name to all its ports', async () => {
    const api = await openApi(onTestFinished);
    const other = await openOther(api, 'dashboard');
    const first = cookieOf(await api.call(null, linkOf(api.server)));
    const second = cookieOf(await fetch(`${other.url}${linkOf(other.server).slice(1)}`, { redirect: 'manual' }));
    const jar = [...new Map([first, second].map((cookie) => [cookie.split('=')[0], cookie])).values()].join('; ');
    expect([await statusAt(api.url, jar), await statusAt(other.url, jar)]).toEqual([200, 200]);
    const headers = { cookie: jar, 'sec-fetch-site': 'same-origin' };
    await fetch(`${other.url}/logout`, { method: 'POST', redirect: 'manual', headers });
    expect([await statusAt(api.url, jar), await statusAt(other.url, jar)]).toEqual([200, 401]);
  });
});
