import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { routes } from '../../../src/api/app.ts';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { type Api, openApi } from '../../support/api.ts';
import { liveRun } from '../../support/live-run.ts';
import { type Description, type Made, requestsOf } from '../../support/openapi.ts';

async function openDescribed() {
  const api = await openApi(onTestFinished);
  await noteTarget(api.redis, api.harness.target, Date.now());
  const runs = [await liveRun(api.harness, 'f-000001'), await liveRun(api.harness, 'f-000002')];
  const { body } = await api.call('read', '/openapi.json');
  const { fp } = api.harness.target;
  const known = { run: runs, fp: [fp], target: [fp], name: ['nightly'], resource: ['views'], id: ['f-000001'] };
  return { api, runs, description: body as Description, requests: requestsOf(body, known) };
}

function send({ call }: Api, role: Parameters<Api['call']>[0], { method, path, body, type }: Made) {
  if (method === 'GET' || body === undefined) return call(role, path, { method });
  if (type === 'application/json') return call(role, path, { method, body });
  return call(role, path, { method, raw: String(body), headers: { 'content-type': type! } });
}

/** Everything that orders could change. */
async function stateOf({ redis }: Api): Promise<string> {
  const keys = (await redis.keys('expunge*')).filter((key) => !/:probe$|:limiter|:request:/.test(key)).sort();
  const dumps = await Promise.all(keys.map(async (key) => `${key} ${(await redis.dumpBuffer(key))?.toString('hex')}`));
  return dumps.join('\n');
}

// FUZZ_REQUESTS=10000 sends more.
const requestsSent = Number(process.env.FUZZ_REQUESTS ?? 1_000);

describe('the description of the API', () => {
  test('names every route with what it takes, in OpenAPI 3.1', async () => {
    const { description } = await openDescribed();
    expect(description.openapi).toBe('3.1.0');
    const described = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(described.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
    const pause = description.paths['/runs/{run}/pause']!.post!;
    expect(pause.requestBody!.content['application/json']!.schema).toMatchObject({
      additionalProperties: false,
      properties: { reason: { maxLength: 500 } },
    });
  });

  test('says which Idempotency-Keys there are, and a path that there is not has an answer like the others', async () => {
    const { api, description } = await openDescribed();
    const { parameters } = description.paths['/runs/{run}/retry']!.post! as unknown as {
      parameters: { name: string; schema: { pattern: string } }[];
    };
    const { pattern } = parameters.find(({ name }) => name === 'Idempotency-Key')!.schema;
    expect(['a', '!~'.repeat(50), '', 'a b', 'ä', 'a'.repeat(101)].map((key) => new RegExp(pattern).test(key))).toEqual(
      [true, true, false, false, false, false],
    );
    for (const [path, role] of [
      ['//nowhere', null],
      ['//login/x', null],
      ['//nowhere', 'read'],
    ] as const) {
      const { status, headers, body } = await api.call(role, path, { method: 'POST', raw: 'x' });
      expect(headers.get('content-type')).toBe('application/problem+json');
      expect(body).toMatchObject({ status: 404, code: 'not_found' });
      expect(status).toBe(404);
    }
  });

  test('is what the server does: whatever is sent gets an answer as described, and no internal error', async () => {
    const { api, requests } = await openDescribed();
    const seen = new Map<string, Set<number>>();
    const sent = fc.asyncProperty(
      requests,
      fc.constantFrom('operate', 'admin') as fc.Arbitrary<'operate' | 'admin'>,
      async (made, role) => {
        const { status, headers, text, body } = await send(api, role, made);
        const route = routes.find(
          ({ method, path }) => path === made.template && method.toUpperCase() === made.method,
        )!;
        seen.set(
          `${made.method} ${made.template}`,
          (seen.get(`${made.method} ${made.template}`) ?? new Set()).add(status),
        );
        expect(status, `${text}\n${api.server.stderr}`).toBeLessThan(500);
        if (status >= 400) {
          expect(headers.get('content-type')).toBe('application/problem+json');
          expect(body).toMatchObject({
            status,
            title: expect.any(String),
            detail: expect.any(String),
            code: expect.any(String),
          });
        } else if (route.answer !== null) {
          expect(route.answer.safeParse(body).error?.issues ?? []).toEqual([]);
          expect(status).toBe(route.status);
        }
      },
    );
    await fc.assert(sent, { numRuns: requestsSent, endOnFailure: true });
    expect([...seen].filter(([, statuses]) => statuses.size > 0)).toHaveLength(
      routes.filter(({ type }) => type !== 'text/event-stream').length,
    );
  });

  test('holds also for those who may only read: nothing that they or nobody sends changes anything', async () => {
    const { api, requests, runs } = await openDescribed();
    await Promise.all([
      api.token('read'),
      ...runs.map((run) => api.call('operate', `/runs/${run}/pause`, { method: 'POST', body: {} })),
    ]);
    const before = await stateOf(api);
    const sent = fc.asyncProperty(
      requests,
      fc.constantFrom('read', null) as fc.Arbitrary<'read' | null>,
      async (made, role) => {
        const { status, text } = await send(api, role, made);
        expect(status, text).toBeLessThan(500);
        if (role === null) expect(status).toBe(401);
      },
    );
    await fc.assert(sent, { numRuns: requestsSent, endOnFailure: true });
    expect(await stateOf(api)).toBe(before);
  });
});
