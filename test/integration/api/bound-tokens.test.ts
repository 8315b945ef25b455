import { describe, expect, onTestFinished, test } from 'vitest';
import { routes } from '../../../src/api/app.ts';
import type { Route } from '../../../src/api/route.ts';
import { addToken, revokeToken } from '../../../src/api/token-store.ts';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import type { Role } from '../../../src/model/role.ts';
import { type Target, targetOf } from '../../../src/model/target.ts';
import { type Answer, type Api, openApi } from '../../support/api.ts';
import { liveRun } from '../../support/live-run.ts';
import type { Description, Operation } from '../../support/openapi.ts';
import { redisContent } from '../../support/redis-content.ts';
import { storeSchedule } from '../../support/schedules.ts';

/** What a request of a route names: the parts of its path, and values for fields that it has to have. */
type Names = Record<string, unknown>;

/** Two targets of one server, each with a run, a schedule, a plan and a token that is bound to it. */
async function openTwo() {
  const api = await openApi(onTestFinished);
  const { harness, redis } = api;
  const own = harness.target;
  const other = targetOf(own.baseUrl, 'the-other-account');
  const tokens = new Map<Target, string>();
  const runs = new Map<Target, string>();
  for (const target of [own, other]) {
    await noteTarget(redis, target, Date.now());
    tokens.set(target, await tokenFor(api, target));
    runs.set(target, await liveRun(harness, `b-${target.fp}`, '--account', target.account));
    await storeSchedule({ redis, target }, `nightly-${target.fp}`, {}, Date.now());
  }
  const description = (await api.call('read', '/openapi.json')).body as Description;
  /** What there is of a target. Plans are made anew for routes of plans, since some requests use them up. */
  const namesOf = async (target: Target, { path } = { path: '{plan}' }) => ({
    run: runs.get(target),
    fp: target.fp,
    target: target.fp,
    name: `nightly-${target.fp}`,
    resource: 'views',
    id: `b-${target.fp}`,
    plan: /plan/.test(path) ? (await makePlan(api, target)).body.plan : null,
  });
  const send = (by: Target, route: Route, names: Names) =>
    request(api, tokens.get(by)!, route, operationOf(description, route), names);
  return { api, own, other, tokens, runs, namesOf, send };
}

function tokenFor({ redis }: Api, target: Target, role: Role = 'operate'): Promise<string> {
  return addToken(redis, { name: `of-${target.fp}`, role, reach: [target], at: Date.now(), who: 'test', expiresAt: 0 });
}

function makePlan({ call }: Api, { fp }: Target): Promise<Answer> {
  const options = { method: 'POST', raw: 'id\np-000001\na/7\n', headers: { 'content-type': 'text/csv' } };
  return call('operate', `/plans?target=${fp}&resource=views&wait=true`, options);
}

function operationOf({ paths }: Description, { path, method }: Route): Operation {
  return paths[path]![method]!;
}

/** Values for fields that a request has to have. One that changes something names a revision that there is not, or so many ids as nobody has. */
const values: Names = {
  seen: 999_999,
  left: 999_998,
  shown: 999_999,
  confirm: 999_999,
  rows: 999_999,
  rate: null,
  limit: null,
  grace_seconds: 0,
  cron: '0 3 * * *',
  from: 'expired',
  max_deletes: 1,
  role: 'read',
  reason: 'a test',
};

async function request({ call, url }: Api, token: string, route: Route, operation: Operation, names: Names) {
  const all = { ...values, ...names };
  const path = route.path.replace(/\{(\w+)\}/g, (_, name) => String(all[name]));
  const needed = operation.parameters.filter((one) => one.in === 'query' && (one.required || one.name === 'resource'));
  const query = new URLSearchParams(needed.map(({ name }): [string, string] => [name, String(all[name])]));
  const headers = { authorization: `Bearer ${token}`, ...(route.upload.length > 0 && { 'content-type': 'text/csv' }) };
  if (route.types.includes('text/event-stream')) return firstEvent(`${url}/api/v1${path}`, headers);
  const { properties = {}, required = [] } = operation.requestBody?.content['application/json']?.schema ?? {};
  const fields = Object.keys(properties).filter((field) => field === 'seen' || required.includes(field));
  return call(null, `${path}?${query}`, {
    method: route.method.toUpperCase(),
    headers,
    ...(route.body !== null && { body: Object.fromEntries(fields.map((name) => [name, all[name]])) }),
    ...(route.upload.length > 0 && { raw: 'id\np-000001\n' }),
  });
}

async function firstEvent(url: string, headers: Record<string, string>): Promise<Pick<Answer, 'status' | 'text'>> {
  const left = new AbortController();
  const answer = await fetch(url, { headers, signal: left.signal });
  let text = '';
  for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.includes('\n\n')) break;
  }
  left.abort();
  return { status: answer.status, text };
}

// The plan is first, because its id contains the fingerprint.
const none = 'f'.repeat(16);
const nowhere = { plan: `${none}-99999999`, run: '20200101-0000-none', fp: none, target: none };

const name = ({ method, path }: Route) => `${method} ${path}`;

describe('a token that is bound to a target', () => {
  /** @invariant roles-and-targets */
  test('finds nothing of another one on any route, as if that were not there, and changes nothing of it', async () => {
    const { api, own, other, namesOf, send } = await openTwo();
    const secrets = await namesOf(own);
    const before = await redisContent(api.redis);
    const wrong: string[] = [];
    for (const route of routes) {
      const { status, text } = await send(other, route, secrets);
      const isNamed =
        /\{(run|fp|plan)\}/.test(route.path) || ['post /plans', 'get /explain/{resource}/{id}'].includes(name(route));
      const plain = (words: string, names: Names) =>
        Object.keys(nowhere).reduce((left, key) => left.replaceAll(String(names[key]), key), words);
      if (isNamed || name(route) === 'post /schedules') {
        const missing = await send(other, route, { ...secrets, ...nowhere });
        const isSame = plain(text, secrets) === plain(missing.text, nowhere) && status === missing.status;
        if (!isSame || status < 400) wrong.push(`${name(route)}: ${status} ${text}, of none ${missing.text}`);
      } else {
        const told = Object.values({ ...secrets, resource: own.account }).filter((one) => text.includes(String(one)));
        if (told.length > 0 || ![200, 403].includes(status)) wrong.push(`${name(route)}: ${status} tells ${told}`);
      }
    }
    expect(wrong, api.server.stderr).toEqual([]);
    expect(await redisContent(api.redis)).toBe(before);
    expect((await api.call('operate', `/plans/${secrets.plan}`)).status).toBe(200);
  });

  test('sees and steers its own on every route that is not about everything', async () => {
    const { api, own, namesOf, send } = await openTwo();
    const wrong: string[] = [];
    for (const route of routes) {
      const names = await namesOf(own, route);
      const { status, text } = await send(own, route, names);
      if ([400, 401, 403, 404].includes(status) || status >= 500) wrong.push(`${name(route)}: ${status} ${text}`);
      const isList = route.method === 'get' && !route.path.includes('{') && route.path !== '/words';
      if (isList && !text.includes(own.fp)) wrong.push(`${name(route)} tells nothing`);
    }
    expect(wrong, api.server.stderr).toEqual([]);
  });

  test('is answered nothing of what a token of its name had done for another target', async () => {
    const { api, own, other, namesOf } = await openTwo();
    const action = {
      target: own.fp,
      name: 'weekly',
      cron: '0 3 * * 0',
      from: 'expired',
      resource: 'views',
      max_deletes: 5,
    };
    const add = (token: string) =>
      api.call(null, '/schedules', {
        method: 'POST',
        body: action,
        headers: { authorization: `Bearer ${token}`, 'idempotency-key': 'k' },
      });
    const apply = async (token: string, plan: unknown) =>
      api.call(null, `/plans/${plan}/apply`, {
        method: 'POST',
        body: { confirm: 1, expect_unprotected: 'true' },
        headers: { authorization: `Bearer ${token}`, 'idempotency-key': 'p' },
      });
    const ofName = (target: Target) =>
      addToken(api.redis, { name: 'ana', role: 'operate', reach: [target], at: 0, who: 'test', expiresAt: 0 });
    const first = await ofName(own);
    const { plan } = await namesOf(own);
    const made = [await add(first), await apply(first, plan)];
    expect(
      made.map(({ status }) => status),
      JSON.stringify(made),
    ).toEqual([201, 201]);
    expect((await apply(first, plan)).headers.get('idempotency-replayed')).toBe('true');
    await revokeToken(api.redis, 'ana', 'test', 0);
    const second = await ofName(other);
    expect((await add(second)).status).toBe(404);
    const replayed = await apply(second, plan);
    expect([replayed.status, replayed.text]).toEqual([404, expect.not.stringContaining(made[1]!.body.run)]);
  });

  test('holds for its sessions, and for a part of the id of a run', async () => {
    const { api, own, other, tokens, runs } = await openTwo();
    const form = new URLSearchParams({ token: tokens.get(other)! });
    const login = await api.call(null, '//login', { method: 'POST', raw: form });
    const headers = { cookie: login.headers.get('set-cookie')!.split(';')[0]! };
    const me = (await api.call(null, '/me', { headers })).body;
    expect(me.targets).toEqual([{ fp: other.fp, target: other.baseUrl, account: other.account }]);
    const seen = (await api.call(null, '/runs', { headers })).body.items.map(({ run }: { run: string }) => run);
    expect(seen).toEqual([runs.get(other)]);
    const record = (part: string) => api.call(null, `/runs/${part}/record`, { headers });
    expect((await record('2')).body.run.id).toBe(runs.get(other)); // both begin with it
    expect((await record(runs.get(own)!.slice(-4))).status).toBe(422);
  });

  test('reads the metrics of a worker of its target, and of no other one', async () => {
    const api = await openApi(onTestFinished, { args: ['worker', '--http', '0.0.0.0:0'] });
    const { harness } = api;
    const scrape = async (target: Target) =>
      api.call(null, '//metrics', { headers: { authorization: `Bearer ${await tokenFor(api, target, 'read')}` } });
    expect((await scrape(harness.target)).status).toBe(200);
    expect((await scrape(targetOf(harness.target.baseUrl, 'the-other-account'))).status).toBe(403);
  });
});

describe('expunge token add --target', () => {
  test('binds to base URLs and the account, says so, and warns where Redis knows none', async () => {
    const { harness, call } = await openApi(onTestFinished);
    const { baseUrl } = harness.target;
    const add = (...args: string[]) => harness.expunge(['token', 'add', ...args]);
    const made = await add('ana', '--target', `${baseUrl}/,https://a.example.com`, '--account', 'acme');
    expect([made.code, made.stderr]).toEqual([
      0,
      expect.stringMatching(
        /bound to http.* as account acme, https:\/\/a\.example\.com as account acme(.|\n)*warning: .*a\.example\.com/,
      ),
    ]);
    const me = await call(null, '/me', { headers: { authorization: `Bearer ${made.stdout.trim()}` } });
    expect(me.body.targets).toMatchObject([
      { target: baseUrl, account: 'acme' },
      { target: 'https://a.example.com', account: 'acme' },
    ]);
    await add('bob');
    const { stdout } = await harness.expunge(['token', 'list']);
    expect(stdout).toMatch(/ana +read +http:\S+ as account acme, https:\/\/a\.example\.com as account acme/);
    expect(stdout).toMatch(/bob +read +all /);
    expect((await add('eve', '--role', 'admin', '--target', baseUrl)).code).toBe(2);
    expect((await add('eve', '--account', 'acme')).code).toBe(2);
    expect((await add('eve', '--target', 'nonsense')).code).toBe(2);
  });
});
