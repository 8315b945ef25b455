import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { addToken } from '../../../src/api/token-store.ts';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { type Role, roles } from '../../../src/model/role.ts';
import { targetOf } from '../../../src/model/target.ts';
import { type Api, openApi } from '../../support/api.ts';
import { liveRun } from '../../support/live-run.ts';
import { type Made, requestsOf } from '../../support/openapi.ts';
import { redisContent } from '../../support/redis-content.ts';
import { storeSchedule } from '../../support/schedules.ts';
import { sized } from '../../support/size.ts';

const requestsSent = sized(1_000, 10_000);

/** A request as it goes out, and who sends it: a role, nobody, or a token that is bound to another target. */
type Sent = { method: string; path: string; headers: Record<string, string>; raw: string | null };
type Sender = Role | 'bound' | null;

async function openFuzzed() {
  const api = await openApi(onTestFinished);
  const { harness, redis } = api;
  await noteTarget(redis, harness.target, Date.now());
  const runs = [await liveRun(harness, 'f-000001'), await liveRun(harness, 'f-000002')];
  await storeSchedule(harness, 'nightly', {}, Date.now());
  const { fp, baseUrl } = harness.target;
  const known = { run: runs, fp: [fp], target: [fp], name: ['nightly'], resource: ['views'], id: ['f-000001'] };
  const { body } = await api.call('read', '/openapi.json');
  const tokens = new Map<Sender, string>();
  for (const role of roles) tokens.set(role, await api.token(role));
  const reach = [targetOf(baseUrl, 'the-other-account')];
  tokens.set('bound', await addToken(redis, { name: 'b', role: 'operate', reach, at: 0, who: 'test', expiresAt: 0 }));
  return { api, runs, fp, tokens, requests: requestsOf(body, known).chain(twisted) };
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'];
const types = ['text/csv', 'application/json', 'application/x-www-form-urlencoded', 'multipart/form-data', 'x', ''];
const parts = ['%00', '%2e%2e%2f', '%', '%E0%A4%A', '..;/', '%0d%0aX:1', '\u202e', '?'.repeat(9), 'a'.repeat(3_000)];
const bodies = [
  '{',
  '[]',
  'null',
  '{"a":1,"a":2}',
  '"\\ud800"',
  '[['.repeat(5_000),
  '{"__proto__":{"role":"admin"}}',
  '\0',
];

/** The request as it is described, in half of all cases; else with another method, path, query, header or body. */
function twisted(made: Made): fc.Arbitrary<Sent> {
  const { path, method, body, type } = made;
  const raw = body === undefined || method === 'GET' ? null : typeof body === 'string' ? body : JSON.stringify(body);
  const headers = { ...(type !== null && { 'content-type': type }) };
  const plain: Sent = { method, path, headers, raw };
  const cut = fc.nat(Math.max(0, path.length - 1));
  const twists = fc.oneof(
    fc.constantFrom(...methods).map((other): Sent => ({ ...plain, method: other })),
    fc
      .tuple(cut, fc.constantFrom(...parts))
      .map(([at, part]): Sent => ({ ...plain, path: path.slice(0, at) + part + path.slice(at) })),
    cut.map((at): Sent => ({ ...plain, path: path.slice(0, at) })),
    fc.constantFrom(...types).map((other): Sent => ({ ...plain, headers: { 'content-type': other } })),
    fc.constantFrom(...bodies).map((other): Sent => ({ ...plain, raw: other })),
    fc.nat(50).map((at): Sent => ({ ...plain, raw: raw?.slice(0, at) ?? null })),
    fc
      .string({ maxLength: 120 })
      .map((key): Sent => ({ ...plain, headers: { ...headers, 'idempotency-key': encodeURI(key) } })),
    fc
      .constantFrom('a', '9'.repeat(40), '-1')
      .map((id): Sent => ({ ...plain, headers: { ...headers, 'last-event-id': id } })),
  );
  return fc.oneof(fc.constant(plain), twists);
}

async function send({ url }: Api, token: string | undefined, { method, path, headers, raw }: Sent) {
  const target = `${url}/api/v1${path.startsWith('/') ? path : `/${path}`}`;
  const answer = await fetch(encodeURI(target).replace(/%25/g, '%'), {
    method,
    redirect: 'manual',
    headers: { connection: 'close', ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    body: method === 'GET' || method === 'HEAD' ? null : raw,
    signal: AbortSignal.timeout(60_000),
  });
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream');
  if (isStream) await answer.body?.cancel();
  return { status: answer.status, text: isStream ? '' : await answer.text() };
}

describe('whatever is sent to the API', () => {
  /** @invariant roles-and-targets */
  test('is answered without an internal error, changes nothing without the role, and leaves the server alive', async () => {
    const { api, runs, fp, tokens, requests } = await openFuzzed();
    for (const run of runs) await api.call('operate', `/runs/${run}/pause`, { method: 'POST', body: {} });
    const seen = new Map<string, number>();
    const fuzz = async (senders: readonly Sender[], check: (sender: Sender, status: number, text: string) => void) => {
      const sent = fc.asyncProperty(requests, fc.constantFrom(...senders), async (request, sender) => {
        const { status, text } = await send(api, tokens.get(sender), request);
        const key = `${sender ?? 'nobody'} ${status}`;
        seen.set(key, (seen.get(key) ?? 0) + 1);
        expect(status, `${text}\n${api.server.stderr}`).toBeLessThan(500);
        check(sender, status, text);
      });
      await fc.assert(sent, { numRuns: requestsSent / 2, endOnFailure: true });
    };
    const before = await redisContent(api.redis);
    await fuzz([null, 'read', 'bound'], (sender, status, text) => {
      if (sender === null) expect([401, 303, 400]).toContain(status);
      if (sender === 'bound' && status < 300) for (const secret of [...runs, fp]) expect(text).not.toContain(secret);
    });
    expect(await redisContent(api.redis)).toBe(before);
    await fuzz(['operate', 'admin'], () => {});
    expect((await api.call(null, '//healthz')).status).toBeLessThan(500);
    expect((await api.call('read', '/overview')).status).toBe(200);
    console.log(Object.fromEntries([...seen].sort()));
  });
});
