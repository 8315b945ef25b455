import { readdirSync } from 'node:fs';
import { zstdCompressSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { keys } from '../../../src/redis/keys.ts';
import { type Api, openApi } from '../../support/api.ts';
import { summaryIn } from '../../support/command.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';
import { until } from '../../support/processes.ts';

const ids = makeIds('o', 20);
const list = `id\n${ids.join('\n')}\n`;
const post = (body: object = {}) => ({ method: 'POST', body });

async function openWithTarget() {
  return withPlans(await openApi(onTestFinished, { objects: annotations(ids) }));
}

/** The same API with its actions. */
async function withPlans(api: Api) {
  await noteTarget(api.redis, api.harness.target, Date.now());
  const plan = async (query = '', raw = list) => {
    const path = `/plans?target=${api.harness.target.fp}&resource=annotations${query}`;
    return api.call('operate', path, { method: 'POST', raw, headers: { 'content-type': 'text/csv' } });
  };
  const apply = (id: string, body: object, role: 'operate' | 'admin' = 'operate') =>
    api.call(role, `/plans/${id}/apply`, post({ confirm: ids.length, ...body }));
  return { ...api, plan, apply };
}

/** A run of the same ids that a command has left to the workers. */
async function detachedRun({ harness }: Api, ...more: string[]): Promise<string> {
  harness.file('list.csv', list);
  const args = ['list.csv', '--resource', 'annotations', '--detach', '--yes', '--json', ...more];
  return summaryIn(await harness.run(args)).run;
}

async function halt({ redis }: Api, run: string): Promise<void> {
  const why = { reason: 'the server answers nonsense', by: 'guard', who: '', halt: 'max_failures' } as const;
  await openLedger(redis).steer(run, Date.now(), { action: 'halt', ...why });
}

describe('an action that makes a run', () => {
  test.each(['halted', 'paused', 'running'])('leaves a %s run of the same ids as it is', async (state) => {
    const api = await openWithTarget();
    const { redis, call, plan, apply } = api;
    const run = await detachedRun(api, '--rate', '1/s');
    if (state === 'halted') await halt(api, run);
    if (state === 'paused') await call('admin', `/runs/${run}/pause`, post({ reason: 'legal hold' }));
    const record = () => redis.hmget(keys.run(run), 'state', 'reason', 'rate', 'stopAt', 'plan', 'note');
    const before = await record();
    expect(before[0]).toBe(state);
    const { body: planned } = await plan('&rate=500/s');
    for (const more of [{}, { rate: '400/s', stop_at: '2099-01-01T00:00:00Z' }]) {
      const refused = await apply(planned.plan, { reason: 'a new run', ...more });
      expect(refused.body).toMatchObject({
        status: 409,
        code: 'guard',
        next: expect.stringMatching(`${run}.* first$`),
      });
    }
    expect(await record()).toEqual(before);
    expect((await call('operate', `/plans/${planned.plan}`)).status).toBe(200); // it can be applied later
  });

  test('says when the run of a plan starts, by its grace period and by the minimum of the target', async () => {
    const { plan, call, harness } = await openWithTarget();
    expect((await plan()).body).toMatchObject({ starts_after_seconds: 0 });
    expect((await plan('&grace=15min')).body).toMatchObject({ starts_after_seconds: 900 });
    const { fp } = harness.target;
    const { revision } = (await call('operate', `/targets/${fp}`)).body;
    const least = post({ reason: 'as agreed', seen: revision, grace_seconds: 1_800 });
    expect((await call('operate', `/targets/${fp}/grace`, least)).status).toBe(200);
    expect((await plan('&grace=15min')).body).toMatchObject({ starts_after_seconds: 1_800 });
  });

  test('makes none that is to start or pause at a moment that is over', async () => {
    const { plan, apply, call } = await openWithTarget();
    const { body: planned } = await plan();
    for (const field of ['stop_at', 'start_at']) {
      const refused = await apply(planned.plan, { [field]: '2026-01-01T00:00:00Z' });
      expect(refused.body, field).toMatchObject({
        status: 422,
        code: 'usage',
        detail: expect.stringContaining('is in the past; nothing was sent'),
      });
      const first = await apply(planned.plan, { [field]: '1970-01-01T00:00:00Z' });
      expect([first.status, first.body.code]).toEqual([400, 'invalid']); // as a number it would be none
    }
    expect((await call('read', '/runs')).body.items).toEqual([]);
  });

  test('makes none of what another action of the same person has begun with other rules, and is never answered with that run', async () => {
    const { redis, call, plan, harness } = await openWithTarget();
    const { fp } = harness.target;
    const apply = (planned: { body: { plan: string } }, key: string, more = {}) =>
      call('operate', `/plans/${planned.body.plan}/apply`, {
        ...post({ confirm: ids.length, ...more }),
        headers: { 'idempotency-key': key },
      });
    const [strict, loose] = [await plan('&rate=1/s'), await plan('&rate=500/s')];
    await redis.set(keys.targetRuns(fp), 'no set');
    expect((await apply(strict, 'strict')).status).toBeGreaterThanOrEqual(500); // its run is written, and not started
    await redis.del(keys.targetRuns(fp));
    const [run] = (await call('read', '/runs')).body.items;
    await redis.hset(keys.run(run.run), 'plan', ''); // as long as its list is being written
    const record = () => redis.hmget(keys.run(run.run), 'state', 'rate', 'stopAt', 'plan');
    const before = await record();
    const another = { stop_at: '2099-01-01T00:00:00Z' };
    const refused = await apply(loose, 'loose', another);
    expect(refused.body).toMatchObject({
      status: 409,
      code: 'guard',
      detail: expect.stringContaining('a different rate'),
    });
    expect(await record()).toEqual(before);
    expect(await apply(strict, 'strict')).toMatchObject({ status: 201, body: { run: run.run } });
    expect(await apply(loose, 'loose', another)).toMatchObject({ status: 409 });
    expect(await redis.hmget(keys.run(run.run), 'rate', 'plan')).toEqual(['1/1000', strict.body.plan]);
  });

  test('retries no ids that another retry holds or has ended with', async () => {
    const api = await openWithTarget();
    const { redis, call, harness } = api;
    const run = await liveRun(harness, 'o-000004');
    const cancel = async (id: string) => {
      await call('operate', `/runs/${id}/pause`, post());
      await call('operate', `/runs/${id}/cancel`, post({ left: 1, shown: 1 }));
      await until('it is cancelled', async () => (await redis.hget(keys.run(id), 'state')) === 'cancelled');
    };
    const retry = () => call('admin', `/runs/${run}/retry`, post({ confirm: 1, reason: 'mine' }));
    await cancel(run);
    const first = await retry();
    expect(first.status, first.text).toBe(201);
    await halt(api, first.body.run);
    const next = `resume or cancel run ${first.body.run} first`;
    expect((await retry()).body).toMatchObject({ status: 409, code: 'guard', next });
    expect(await redis.hget(keys.run(first.body.run), 'state')).toBe('halted');
    await cancel(first.body.run);
    const words = expect.stringContaining(`run ${first.body.run} of these ids is cancelled`);
    expect((await retry()).body).toMatchObject({ status: 409, code: 'guard', detail: words });
  });
});

describe('a list that is empty, or has more ids than max_deletes allows', () => {
  test('becomes a plan only with allow_empty or partial, whatever the server itself is set to', async () => {
    const api = await openApi(onTestFinished, { env: { EXPUNGE_ALLOW_EMPTY: 'true' } });
    const { plan } = await withPlans(api);
    for (const raw of ['id\n', '']) {
      const refused = await plan('', raw);
      expect([refused.status, refused.body.detail]).toEqual([
        422,
        'list.csv: the list is empty: 0 rows; nothing was sent',
      ]);
      expect((await plan('&allow_empty=true', raw)).status).toBe(201);
    }
    const excess = await plan('&max_deletes=19');
    expect([excess.status, excess.body.detail]).toEqual([
      422,
      'the list holds 20 ids, --max-deletes allows 19; nothing was sent',
    ]);
    expect((await plan('&max_deletes=20')).status).toBe(201);
    expect((await plan('&max_deletes=19&partial=true')).status).toBe(201);
  });

  test('is applied in part if the plan or the action says so, and else not at all', async () => {
    const { plan, apply, call } = await openWithTarget();
    const { body: whole } = await plan();
    const refused = await apply(whole.plan, { max_deletes: '5' });
    expect([refused.status, refused.body.detail]).toEqual([422, expect.stringContaining('--max-deletes allows 5')]);
    expect((await call('read', '/runs')).body.items).toEqual([]);
    const ofAction = await apply(whole.plan, { max_deletes: '5', partial: 'true' });
    expect(ofAction.status, ofAction.text).toBe(201);
    const { body: part } = await plan('&max_deletes=5&partial=true', list.replaceAll('o-', 'p-'));
    const ofPlan = await apply(part.plan, { rate: '5/s' });
    expect(ofPlan.status, ofPlan.text).toBe(201);
  });
});

describe('a plan that is applied with other rules', () => {
  test('is as old as it was: a list that was run since is not deleted again', async () => {
    const { plan, apply, call, harness } = await openWithTarget();
    const [first, second] = [await plan(), await plan()];
    const made = await apply(first.body.plan, {});
    await harness.worker();
    await until('it is over', async () => (await call('read', `/runs/${made.body.run}`)).body.state === 'completed');
    for (const more of [{}, { rate: '5/s' }]) {
      const refused = await apply(second.body.plan, more);
      expect(refused.body).toMatchObject({
        status: 409,
        code: 'guard',
        detail: expect.stringContaining('since the plan'),
      });
    }
    expect((await call('read', '/runs')).body.items).toHaveLength(1);
  });

  test('keeps who made it, when, and why', async () => {
    const { plan, apply, call } = await openWithTarget();
    const planned = await plan('&reason=gdpr-123');
    const made = await apply(planned.body.plan, { rate: '5/s' }, 'admin');
    const { body: run } = await call('read', `/runs/${made.body.run}`);
    expect(run).toMatchObject({ note: 'gdpr-123', created_by: 'test-admin', settings: { rate: '5/s' } });
    const { planned_by, planned_at } = planned.body;
    expect(planned_by).toBe('test-operate');
    const entry = { action: 'apply', who: 'test-admin', reason: 'gdpr-123', planned_by, planned_at };
    expect(run.audit).toContainEqual(expect.objectContaining(entry));
  });

  test('is a submission, and no plan, where one person sends the list and has it deleted', async () => {
    const { plan, apply, call } = await openWithTarget();
    const made = await apply((await plan()).body.plan, {});
    const { body: run } = await call('read', `/runs/${made.body.run}`);
    const actions = run.audit.map(({ action }: { action: string }) => action);
    expect(actions).toContain('submit');
    expect(actions).not.toContain('apply');
  });
});

describe('a list that was sent', () => {
  test.each([
    ['text/tab-separated-values', 'name\tid\nx\to-000001\n', ''],
    ['text/csv', 'name;id\nx;o-000001\n', '&delimiter=%3B'],
    ['text/csv', 'o-000001,x\n', '&no_header=true'],
    ['text/plain', 'o-000001\n', ''],
    ['application/x-ndjson', '{"id":"o-000001"}\n', ''],
    ['application/json', '[{"id":"o-000001"}]', ''],
  ])('is read as %s', async (type, raw, query) => {
    const { call, harness } = await openWithTarget();
    const path = `/plans?target=${harness.target.fp}&resource=annotations${query}`;
    const { body } = await call('operate', path, { method: 'POST', raw, headers: { 'content-type': type } });
    expect(body).toMatchObject({ confirm: 1, samples: ['o-000001'] });
  });

  test('hands out all its rejected rows as a file, until its plan is forgotten', async () => {
    const { plan, call } = await openWithTarget();
    const bad = Array.from({ length: 25 }, (_, n) => `a/${n}`);
    const { body } = await plan('', `id\n${[...ids, ...ids.map((id) => `x${id}`), ...bad].join('\n')}\n`);
    expect(body.rejected_samples).toHaveLength(20);
    const rejects = () => call('operate', `/plans/${body.plan}/rejects`);
    const { status, headers, text } = await rejects();
    expect([status, headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
    expect(text.trim().split('\n')).toHaveLength(1 + bad.length);
    await call('operate', `/plans/${body.plan}`, { method: 'DELETE' });
    expect((await rejects()).status).toBe(404);
    const { body: clean } = await plan();
    expect((await call('operate', `/plans/${clean.plan}/rejects`)).status).toBe(404);
  });

  test('leaves nothing of its rows on the server once its plan is forgotten or applied, nor when it is refused', async () => {
    const { plan, call, harness, redis } = await openWithTarget();
    const raw = 'id\no-000001\nsecret\u0007a\n';
    const leftIn = () =>
      readdirSync(harness.stateDir, { recursive: true }).filter((name) => /rejects|csv$/.test(String(name)));
    const forgotten = await plan('', raw);
    expect(forgotten.body.rejected_samples).toMatchObject([{ line: 3, code: 'control_character' }]);
    await call('operate', `/plans/${forgotten.body.plan}`, { method: 'DELETE' });
    expect(leftIn()).toEqual([]);
    const kept = () => redis.exists(keys.planFiles(harness.target.fp, forgotten.body.plan));
    expect(await kept()).toBe(0);
    const applied = await plan('&rate=5/s', raw);
    const made = await call('operate', `/plans/${applied.body.plan}/apply`, post({ confirm: 1, rate: '6/s' }));
    expect(made.status, made.text).toBe(201);
    expect((await call('read', `/runs/${made.body.run}`)).body.files).toEqual(['list.csv']);
    const refused = await plan('', `id\n${Array.from({ length: 30 }, (_, i) => `x\u0007${i}`).join('\n')}\n`);
    expect(refused.body).toMatchObject({ status: 422, detail: expect.stringContaining('30 of 30 rows are rejected') });
    const other = await plan('&column=nowhere');
    expect(other.body).toMatchObject({ status: 422, detail: expect.stringMatching(/^list\.csv:1: no column/) });
    const { plan: id } = (await plan('&limit=2')).body;
    await redis.hset(keys.planFiles(harness.target.fp, id), 'list.0', zstdCompressSync('id\no-000005\n'));
    const changed = await call('operate', `/plans/${id}/apply`, post({ confirm: 2 }));
    expect(changed.body).toMatchObject({
      status: 409,
      detail: expect.stringContaining('no longer matches the plan: rows 1 instead of '),
    });
    await call('operate', `/plans/${id}`, { method: 'DELETE' });
    for (const { text } of [refused, other, changed]) expect(text).not.toContain(harness.stateDir);
    expect(leftIn()).toEqual([]);
  });
});
