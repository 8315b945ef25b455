import { describe, expect, onTestFinished, test } from 'vitest';
import { openApi } from '../../support/api.ts';

describe('expunge dashboard', () => {
  test('prints a link that logs in once, as admin, with a cookie that no page can read', async () => {
    const { server, call } = await openApi(onTestFinished);
    const link = new URL(server.stdout.trim());
    const once = await call(null, `//${link.pathname.slice(1)}${link.search}`);
    expect(once.status).toBe(303);
    const cookie = once.headers.get('set-cookie')!;
    expect(cookie).toMatch(/^expunge_session_\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    const headers = { cookie: cookie.split(';')[0]! };
    expect((await call(null, '/me', { headers })).body).toMatchObject({ name: expect.any(String), role: 'admin' });
    const again = await call(null, `//${link.pathname.slice(1)}${link.search}`);
    expect([again.status, again.headers.get('location')]).toEqual([303, '/login?problem=link']);
    expect(again.headers.get('set-cookie')).toBeNull();
    const page = await call(null, '//runs/some', { headers });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const out = await call(null, '//logout', {
      method: 'POST',
      headers: { ...headers, 'sec-fetch-site': 'same-origin' },
    });
    expect(out.status).toBe(303);
    expect((await call(null, '/me', { headers })).status).toBe(401);
  });

  test('says with --json where it listens, and ends at a signal', async () => {
    const { server, call } = await openApi(onTestFinished, { args: ['dashboard', '--port', '0', '--json'] });
    const said = JSON.parse(server.stdout);
    expect(said).toMatchObject({ v: 1, type: 'dashboard', url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
    expect(said.login).toMatch(`${said.url}/login?once=`);
    expect((await call(null, '//login')).status).toBe(200);
    server.signal('SIGINT');
    expect(await server.ended).toMatchObject({ code: 0 });
  });

  test('sends a policy that allows neither inline scripts nor anything from elsewhere, and serves modules as they are', async () => {
    const { call } = await openApi(onTestFinished);
    const login = await call(null, '//login');
    const policy = login.headers.get('content-security-policy')!;
    expect(policy).toMatch(/default-src 'none'.*script-src 'self'/);
    expect(policy).not.toMatch(/unsafe|https?:/);
    expect(login.headers.get('x-frame-options')).toBe('DENY');
    const files = [
      'lit-html/lit-html.js',
      'lit-html/directives/repeat.js',
      'uplot/uPlot.esm.js',
      'uplot/uPlot.min.css',
    ];
    for (const file of files) {
      const { status, headers, text } = await call(null, `//assets/${file}`);
      expect([file, status]).toEqual([file, 200]);
      expect(headers.get('content-type')).toMatch(file.endsWith('.css') ? /css/ : /javascript/);
      expect(text).not.toMatch(/^import .* from ["'][^./]/m);
      const known = await call(null, `//assets/${file}`, { headers: { 'if-none-match': headers.get('etag')! } });
      expect(known.status).toBe(304);
    }
    for (const path of [
      '../package.json',
      '%2e%2e/app.ts',
      'lit-html/../../package.json',
      'lit-html/package.json',
      'lit-html/lit-html.d.ts',
      'nothing.js',
    ])
      expect((await call(null, `//assets/${path}`)).status).not.toBe(200);
  });

  test('shows at the login why one was refused, and only what there is a sentence for', async () => {
    const { call } = await openApi(onTestFinished);
    const shown = async (query: string) => {
      const { text } = await call(null, `//login${query}`);
      return [...text.matchAll(/<p ([^>]*)class="alarm"/g)]
        .map(([, more]) => more)
        .filter((more) => !/hidden/.test(more!));
    };
    expect(await shown('')).toEqual([]);
    expect(await shown('?problem=link')).toEqual(['id="problem" ']);
    expect(await shown('?problem=%22%3E%3Cscript%3E')).toEqual([]);
  });

  test('tells a browser on a page what went wrong, whatever is in it', async () => {
    const { call } = await openApi(onTestFinished);
    const { status, headers, text } = await call(null, '//assets/%3Cb%3Enothing', { headers: { accept: 'text/html' } });
    expect([status, headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(text).toContain('<h1>There is no such thing</h1>');
    expect(text).not.toContain('<b>');
    expect((await call(null, '//assets/nothing')).headers.get('content-type')).toBe('application/problem+json');
    const api = await call('read', '/nothing', { headers: { accept: 'text/html' } });
    expect(api.headers.get('content-type')).toBe('application/problem+json');
  });

  test('is for browsers of this machine only: another name that leads here is refused', async () => {
    const { call } = await openApi(onTestFinished);
    const { request } = await import('node:http');
    const { url } = await openApi(onTestFinished);
    const status = await new Promise((resolve) => {
      request(`${url}/login`, { headers: { host: 'evil.example.com' } }, ({ statusCode }) => resolve(statusCode)).end();
    });
    expect(status).toBe(403);
    expect((await call(null, '//login')).status).toBe(200);
  });
});
