import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../../../src/api/app.ts';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { type Api, openApi } from '../../support/api.ts';
import { liveRun } from '../../support/live-run.ts';
import { type Description, type Made, requestsOf } from '../../support/openapi.ts';
import { isFull, sized } from '../../support/size.ts';

const tasks: (() => Promise<void>)[] = [];
let described: Awaited<ReturnType<typeof openDescribed>>;

beforeAll(async () => {
  described = await openDescribed();
});

afterAll(async () => {
  for (const task of tasks.toReversed()) await task();
});

async function openDescribed() {
  const api = await openApi((task) => tasks.push(task));
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

// FUZZ_REQUESTS=10000 sends more.
const requestsSent = Number(process.env.FUZZ_REQUESTS ?? sized(100, 1_000));

describe('the description of the API', () => {
  test('names every route with what it takes, in OpenAPI 3.1', async () => {
    const { description } = described;
    expect(description.openapi).toBe('3.1.0');
    const named = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(named.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
    const pause = description.paths['/runs/{run}/pause']!.post!;
    expect(pause.requestBody!.content['application/json']!.schema).toMatchObject({
      additionalProperties: false,
      properties: { reason: { maxLength: 500 } },
    });
  });

  test('says which Idempotency-Keys there are, and a path that there is not has an answer like the others', async () => {
    const { api, description } = described;
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

  test('names every format of a report, and the server sends each as that', async () => {
    const { api, description, runs } = described;
    const { parameters, responses } = description.paths['/runs/{run}/report']!.get!;
    const types = Object.keys(responses['200']!.content);
    const formats = parameters.find(({ name }) => name === 'format')!.schema.enum!;
    const sent = await Promise.all(
      formats.map(async (format) => (await api.call('read', `/runs/${runs[0]}/report?format=${format}`)).headers),
    );
    expect(sent.map((headers) => headers.get('content-type')!.split(';')[0])).toEqual(types);
    expect(types).toEqual(['text/csv', 'application/x-ndjson', 'text/html']);
  });

  test('says when a schedule runs, in words, also where it was just added', async () => {
    const { api, description } = described;
    const { required } = description.paths['/schedules']!.post!.responses['201']!.content['application/json']!.schema!;
    expect(required).toContain('when');
    const action = {
      target: api.harness.target.fp,
      name: 'weekly',
      cron: '0 3 * * 0',
      from: 'expired',
      resource: 'views',
    };
    const body = { ...action, max_deletes: 5 };
    const added = await api.call('operate', '/schedules', { method: 'POST', body });
    expect(added.status, added.text).toBe(201);
    expect(added.body.when).toBe('At 03:00, only on Sunday, UTC');
    expect(added.body.when).toBe((await api.call('read', `/schedules/${body.target}/weekly`)).body.when);
  });

  test('has the names of fields, and so have errors about them', async () => {
    const { api, runs } = described;
    const { fp } = api.harness.target;
    const wrong = '403=nonsense';
    const csv = { raw: 'id\na\n', headers: { 'content-type': 'text/csv' } };
    const schedule = { target: fp, name: 'one', cron: '0 3 * * *', from: 'x', resource: 'views', max_deletes: 5 };
    const sent = [
      await api.call('operate', `/plans?target=${fp}&resource=views&on_status=${wrong}`, { method: 'POST', ...csv }),
      await api.call('operate', '/schedules', { method: 'POST', body: { ...schedule, on_status: wrong } }),
      await api.call('operate', `/runs/${runs[0]}/resume`, { method: 'POST', body: { seen: 1, on_status: wrong } }),
    ];
    for (const { body } of sent) {
      expect(body).toMatchObject({ status: 400, detail: expect.stringMatching(/^(body\.)?on_status: /) });
      expect(JSON.stringify(body)).not.toContain('onStatus');
    }
  });

  test('has every method of a path: any other one is answered 405, with those that there are', async () => {
    const { api, description } = described;
    const wrong: string[] = [];
    for (const [template, methods] of Object.entries(description.paths)) {
      const allowed = Object.keys(methods).flatMap((method) =>
        method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()],
      );
      const path = template.replace(/\{\w+\}/g, 'x');
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        if (allowed.includes(method)) continue;
        const { status, headers, body } = await api.call('read', path, { method });
        const isSaid =
          status === 405 && body.code === 'method_not_allowed' && headers.get('allow') === allowed.join(', ');
        if (!isSaid) wrong.push(`${method} ${path}: ${status} ${headers.get('allow')}`);
      }
    }
    expect(wrong).toEqual([]);
    expect((await api.call('read', '/openapi.json', { method: 'POST' })).status).toBe(405);
    expect((await api.call('read', '/nowhere', { method: 'POST' })).status).toBe(404);
    expect((await api.call(null, '/runs', { method: 'PUT' })).status).toBe(401);
  });

  test('is what the server does: whatever is sent gets an answer as described, and no internal error', async () => {
    const { api, requests } = described;
    const seen = new Set<string>();
    const sent = fc.asyncProperty(
      requests,
      fc.constantFrom('operate', 'admin') as fc.Arbitrary<'operate' | 'admin'>,
      async (made, role) => {
        const { status, headers, text, body } = await send(api, role, made);
        const route = routes.find(
          ({ method, path }) => path === made.template && method.toUpperCase() === made.method,
        )!;
        seen.add(`${made.method} ${made.template}`);
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
    const answered = routes.filter(({ types }) => !types.includes('text/event-stream'));
    if (isFull) expect(seen.size).toBe(answered.length); // so many reach each of them
  });
});
