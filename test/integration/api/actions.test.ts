import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { requestDelivery } from '../../../src/ledger/results.ts';
import { keys } from '../../../src/redis/keys.ts';
import { readSchedule } from '../../../src/schedule/schedule-store.ts';
import { type Api, openApi } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';
import { until } from '../../support/processes.ts';
import { storeSchedule } from '../../support/schedules.ts';

const csv = { 'content-type': 'text/csv' };

async function openWithTarget(options: Parameters<typeof openApi>[1] = {}): Promise<Api> {
  const api = await openApi(onTestFinished, { objects: annotations(makeIds('o', 200)), ...options });
  await noteTarget(api.redis, api.harness.target, Date.now());
  return api;
}

async function planOf({ call, harness }: Api, list: string, more = '') {
  return call('operate', `/plans?target=${harness.target.fp}&resource=annotations&name=old${more}`, {
    method: 'POST',
    raw: list,
    headers: csv,
  });
}

const post = (body: object) => ({ method: 'POST', body });

/** The revision of a run, as somebody sees it now. */
async function seenOf({ call }: Api, run: string): Promise<number> {
  return (await call('read', `/runs/${run}`)).body.revision;
}

describe('a list over HTTP', () => {
  test('is looked at first, and then deleted by the workers, in the name of who asked', async () => {
    const api = await openWithTarget();
    const { call, harness } = api;
    const ids = makeIds('o', 200);
    const planned = await planOf(api, `id\n${[...ids, ids[0], 'not ok\u0007'].join('\n')}\n`);
    expect(planned.status, planned.text).toBe(201);
    expect(planned.body).toMatchObject({
      confirm: 200,
      counts: { rows: 202, annotations: 200, rejected: 1 },
    });
    expect(planned.body.first.url).toBe(`${harness.target.baseUrl}/v2/annotations/${ids[0]}`);
    const { plan } = planned.body;
    expect((await call('operate', `/plans/${plan}`)).body).toEqual(planned.body);
    expect(await call('operate', `/plans/${plan}/apply`, post({ confirm: 199 }))).toMatchObject({
      status: 409,
      body: { code: 'conflict', confirm: 200 },
    });
    const made = await call('operate', `/plans/${plan}/apply`, post({ confirm: 200, reason: 'old', rate: '500/s' }));
    expect(made.status, made.text).toBe(201);
    await harness.worker();
    await harness.runIs('completed', ({ state }) => state === 'completed');
    const { body: run } = await call('read', `/runs/${made.body.run}`);
    expect(run).toMatchObject({
      deleted: 200,
      duplicate: 1,
      created_by: 'test-operate',
      note: 'old',
      command: '',
    });
    expect(run.settings.rate).toBe('500/s');
    expect(readdirSync(`${harness.stateDir}/uploads`)).toEqual([]);
    const report = await call('read', `/runs/${run.run}/report?only=deleted`);
    expect(report.headers.get('content-disposition')).toBe(`attachment; filename="run-${run.run}.csv"`);
    expect(report.text.trim().split('\n')).toHaveLength(201);
    const { body: failures } = await call('read', `/runs/${run.run}/failures`);
    expect(failures.items).toMatchObject([{ outcome: 'rejected', count: 1, samples: [{ line: 203 }] }]);
    const explained = await call(
      'read',
      `/explain/annotations/${encodeURIComponent(ids[7]!)}?target=${harness.target.fp}`,
    );
    expect(explained.body.items).toMatchObject([{ run: run.run, outcome: 'deleted', why: expect.any(String) }]);
    expect((await call('read', `/explain/annotations/nowhere?target=${harness.target.fp}`)).status).toBe(404);
  });

  test('is refused with what is wrong and what to do, and leaves nothing on the disk', async () => {
    const api = await openWithTarget();
    const { call, harness } = api;
    const wrong = await planOf(api, 'name\na\n', '&column=id');
    expect(wrong).toMatchObject({
      status: 422,
      body: { code: 'usage', title: expect.any(String), detail: expect.any(String) },
    });
    expect(wrong.headers.get('content-type')).toBe('application/problem+json');
    expect((await planOf(api, 'id\na\nb\n', '&expect_count=3')).body).toMatchObject({ status: 409, code: 'guard' });
    expect((await planOf(api, 'id\na\n', '&rate=fast')).body).toMatchObject({ status: 400, code: 'invalid' });
    const elsewhere = await call('operate', '/plans?target=0123456789abcdef', {
      method: 'POST',
      raw: 'id\na\n',
      headers: csv,
    });
    expect(elsewhere.body).toMatchObject({ status: 404, code: 'not_found' });
    expect(readdirSync(`${harness.stateDir}/uploads`)).toEqual([]);
  });

  test('makes one run for one Idempotency-Key, and answers the repetition the same', async () => {
    const api = await openWithTarget();
    const { call } = api;
    const { plan } = (await planOf(api, 'id\no-000001\n')).body;
    const apply = () =>
      call('operate', `/plans/${plan}/apply`, { ...post({ confirm: 1 }), headers: { 'idempotency-key': 'once' } });
    const first = await apply();
    const again = await apply();
    expect([first.status, again.status, again.body]).toEqual([201, 201, first.body]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const other = { ...post({ confirm: 2 }), headers: { 'idempotency-key': 'once' } };
    expect((await call('operate', `/plans/${plan}/apply`, other)).status).toBe(422);
    expect((await call('read', '/runs')).body.items).toHaveLength(1);
  });
});

describe('an action over HTTP', () => {
  test('that says something twice is refused: one of the two is not meant', async () => {
    const api = await openWithTarget();
    const run = await liveRun(api.harness, 'o-000004');
    const action = {
      method: 'POST',
      raw: '{"rate":"5/s","rate":"500/s"}',
      headers: { 'content-type': 'application/json' },
    };
    const refused = await api.call('operate', `/runs/${run}/rate`, action);
    expect(refused.body).toMatchObject({
      status: 400,
      code: 'invalid',
      detail: 'expected JSON: it has "rate" twice in one object (line 1 column 15)',
    });
    expect((await api.call('read', `/runs/${run}`)).body).toMatchObject({ settings: { rate: null } });
    const once = await api.call('operate', `/runs/${run}/rate`, { ...action, raw: '{"rate":"5/s"}' });
    expect(once.body).toMatchObject({ rate: '5/s' });
  });

  test('steers a run as the command does, and stands in its audit trail with name and reason', async () => {
    const api = await openWithTarget();
    const { call, harness } = api;
    const run = await liveRun(harness, 'o-000003');
    const steer = (action: string, body: object) => call('operate', `/runs/${run}/${action}`, post(body));
    expect((await steer('pause', { reason: 'too early' })).body).toMatchObject({
      state: 'paused',
      who: 'test-operate',
    });
    expect((await steer('rate', { rate: '5/s', reason: 'slow' })).body).toMatchObject({
      rate: '5/s',
      before: { rate: null },
    });
    expect((await steer('rate', { rate: null })).body).toMatchObject({ rate: null });
    const seen = await seenOf(api, run);
    expect((await steer('resume', { seen })).body).toMatchObject({ state: 'running' });
    expect((await steer('retry', { confirm: 1 })).body).toMatchObject({ status: 422, code: 'usage' });
    const { audit } = (await call('read', `/runs/${run}`)).body;
    expect(audit).toContainEqual(
      expect.objectContaining({ action: 'pause', who: 'test-operate', reason: 'too early' }),
    );
    expect(audit.filter(({ who }: { who: string }) => who === 'test-operate')).toHaveLength(4);
  });

  test('cancels only for the number that was shown and typed, and that can be left', async () => {
    const api = await openWithTarget();
    const { call, harness } = api;
    const run = await liveRun(harness, 'o-000004');
    const cancel = (left: number, shown: number) => call('operate', `/runs/${run}/cancel`, post({ left, shown }));
    await call('operate', `/runs/${run}/pause`, post({}));
    expect((await cancel(2, 1)).body).toMatchObject({ status: 409, left: 1 });
    expect((await cancel(2, 2)).body).toMatchObject({ status: 409, left: 1 });
    expect((await call('read', `/runs/${run}`)).body.state).toBe('paused');
    expect((await cancel(1, 1)).status).toBe(200);
    await until('it is cancelled', async () => (await call('read', `/runs/${run}`)).body.state === 'cancelled');
    const retried = await call('operate', `/runs/${run}/retry`, post({ confirm: 1, reason: 'after all' }));
    expect(retried.status, retried.text).toBe(201);
    expect((await call('read', `/runs/${retried.body.run}`)).body).toMatchObject({
      retry_of: run,
      created_by: 'test-operate',
    });
  });

  test('cancels a running run only for a number of rows that it can have had left', async () => {
    const api = await openWithTarget();
    const { call, harness } = api;
    const run = await liveRun(harness, 'o-000007');
    const cancel = (left: number) => call('operate', `/runs/${run}/cancel`, post({ left, shown: left }));
    for (const left of [1e9, 2]) expect((await cancel(left)).body).toMatchObject({ status: 409, left: 1 });
    expect((await call('read', `/runs/${run}`)).body.state).toBe('running');
    expect((await cancel(1)).status).toBeLessThan(300);
  });

  test('retries and removes a run only for the number that a person typed', async () => {
    const api = await openWithTarget();
    const { call, harness, redis } = api;
    const run = await liveRun(harness, 'o-000008');
    await call('operate', `/runs/${run}/pause`, post({}));
    await call('operate', `/runs/${run}/cancel`, post({ left: 1, shown: 1 }));
    await until('it is cancelled', async () => (await call('read', `/runs/${run}`)).body.state === 'cancelled');
    const retry = (body: object) => call('operate', `/runs/${run}/retry`, post(body));
    expect((await retry({})).status).toBe(400);
    expect((await retry({ confirm: 2 })).body).toMatchObject({ status: 409, code: 'guard' });
    expect((await call('read', '/runs')).body.items).toHaveLength(1);
    const remove = (query: string) => call('operate', `/runs/${run}${query}`, { method: 'DELETE' });
    expect((await remove('')).status).toBe(400);
    const seen = await seenOf(api, run);
    expect((await remove(`?rows=2&seen=${seen}`)).body).toMatchObject({ status: 409, code: 'conflict', rows: 1 });
    await requestDelivery(redis, run);
    expect((await remove(`?rows=1&seen=${seen}`)).body).toMatchObject({
      status: 409,
      detail: expect.stringContaining('results'),
    });
    expect((await call('read', `/runs/${run}`)).status).toBe(200);
    await redis.hset(keys.run(run), 'resultsWanted', 0);
    expect((await remove('?rows=1')).status).toBe(400);
    // Somebody who saw the run before it ended did not mean this one.
    expect((await remove(`?rows=1&seen=${seen - 1}`)).body).toMatchObject({ status: 409, code: 'guard' });
    expect((await call('read', `/runs/${run}`)).status).toBe(200);
    expect((await remove(`?rows=1&seen=${seen}`)).status).toBe(200);
    expect((await call('read', `/runs/${run}`)).status).toBe(404);
  });

  test('retries what is left for the number that was shown, without the ids that were protected since', async () => {
    const [kept, other] = makeIds('o', 2) as [string, string];
    const api = await openWithTarget({ prepare: (harness) => ({ EXPUNGE_PROTECT: harness.list([kept]) }) });
    const { call, harness } = api;
    const list = harness.file('two.csv', `id\n${kept}\n${other}\n`);
    await harness.run([list, '--resource', 'annotations', '--detach', '--yes']);
    const { id } = await harness.onlyRun();
    await harness.expunge(['cancel', id, '--yes']);
    const [group] = (await call('read', `/runs/${id}/failures`)).body.items;
    const retry = (confirm: number) => call('operate', `/runs/${id}/retry`, post({ confirm }));
    expect((await retry(1)).body).toMatchObject({ status: 409, code: 'guard' });
    const retried = await retry(group.count);
    expect([group.count, retried.status], retried.text).toEqual([2, 201]);
    await harness.worker();
    await until(
      'the retry has ended',
      async () => (await call('read', `/runs/${retried.body.run}`)).body.state === 'completed',
    );
    expect((await call('read', `/runs/${retried.body.run}`)).body).toMatchObject({ deleted: 1, protected: 1 });
    expect([harness.sandbox.remaining(), harness.arrivals.length]).toEqual([199, 1]);
  });

  test('tells what the command would warn of', async () => {
    const api = await openWithTarget();
    const { call, harness } = api;
    const { fp } = harness.target;
    const run = await liveRun(harness, 'o-000005');
    const steer = (action: string, body = {}) => call('operate', `/runs/${run}/${action}`, post(body));
    expect((await steer('pause')).body.warnings).toEqual([]);
    await call('operate', `/targets/${fp}/stop`, post({ reason: 'wrong list' }));
    const isStopped = expect.stringMatching(/^the run does not continue yet\. Stopped .*wrong list/);
    const seen = await seenOf(api, run);
    expect((await steer('resume', { seen })).body).toMatchObject({
      state: 'running',
      warnings: [isStopped, expect.stringMatching(/^the run does not continue yet\. No worker /)],
    });
    const { body: planned } = await planOf(api, 'id\no-000006\n');
    const made = await call('operate', `/plans/${planned.plan}/apply`, post({ confirm: 1 }));
    expect(made.body.warnings).toEqual([
      expect.stringMatching(/^no worker of this target is alive; start one: /),
      expect.stringMatching(/^the run is stopped\. /),
    ]);
    const nightly = { target: fp, name: 'nightly', cron: '0 3 * * *', from: 'expired', max_deletes: 5 };
    const added = await call('operate', '/schedules', post({ ...nightly, resource: 'views' }));
    expect(added.body.warnings).toEqual([expect.stringContaining('no worker of this target that has the source')]);
  });

  test('stops and starts a target, and limits it', async () => {
    const api = await openWithTarget();
    const { call, harness } = api;
    const { fp } = harness.target;
    const act = (action: string, body: object) => call('operate', `/targets/${fp}/${action}`, post(body));
    expect((await act('stop', { reason: 'wrong list' })).body).toMatchObject({
      changed: true,
      stop: { who: 'test-operate', reason: 'wrong list' },
    });
    const seen = async () => (await call('read', `/targets/${fp}`)).body.revision;
    const bySeen = async (action: string, body: object = {}) => act(action, { ...body, seen: await seen() });
    expect((await bySeen('start')).body).toMatchObject({ changed: true, stop: null });
    expect((await bySeen('start')).body).toMatchObject({ changed: false });
    expect((await bySeen('limit', { limit: '5/s,9/day' })).body).toMatchObject({ limit: { rate: '5/s,9/day' } });
    expect((await bySeen('limit', { limit: 'much' })).status).toBe(422);
    expect((await bySeen('grace', { grace_seconds: 600 })).body).toMatchObject({ min_grace: { grace: '10min' } });
    for (const [action, body] of [
      ['limit', { limit: null }],
      ['grace', { grace_seconds: 0 }],
    ] as const) {
      expect((await act(action, body)).status, action).toBe(400);
      const refused = await act(action, { ...body, seen: (await seen()) - 1 });
      expect(refused.body, action).toMatchObject({ status: 409, code: 'guard' });
    }
    expect((await act('release', {})).body).toMatchObject({ changed: false });
    const { body } = await call('read', `/targets/${fp}`);
    expect(body.audit.map(({ action }: { action: string }) => action)).toEqual([
      'stop-all',
      'start-all',
      'limit',
      'grace',
    ]);
  });

  test('adds schedules of named sources only', async () => {
    const api = await openWithTarget();
    const { call, harness } = api;
    const { fp } = harness.target;
    const nightly = {
      target: fp,
      name: 'nightly',
      cron: '0 3 * * *',
      from: 'expired',
      max_deletes: 50,
      resource: 'views',
    };
    const added = await call('operate', '/schedules', post({ ...nightly, reason: 'policy' }));
    expect(added.status, added.text).toBe(201);
    expect(added.body).toMatchObject({ name: 'nightly', state: 'active', from: 'expired' });
    for (const wrong of [
      { from: 'https://evil.example.com/list' },
      { command: ['sh'] },
      { heartbeat: 'https://evil.example.com' },
      { protect: '/etc/passwd' },
    ])
      expect((await call('operate', '/schedules', post({ ...nightly, name: 'other', ...wrong }))).status).toBe(400);
    expect((await call('operate', `/schedules/${fp}/nightly/pause`, post({ reason: 'audit' }))).body).toMatchObject({
      state: 'paused',
    });
    expect((await call('read', `/schedules/${fp}/nightly`)).body).toMatchObject({
      state: 'paused',
      who: 'test-operate',
      reason: 'audit',
    });
    expect((await call('read', '/overview')).body.schedules).toHaveLength(1);
    const act = (action: string, body: object) => call('operate', `/schedules/${fp}/nightly/${action}`, post(body));
    const { revision: seen } = (await call('read', `/schedules/${fp}/nightly`)).body;
    expect((await act('remove', {})).status).toBe(400);
    for (const action of ['remove', 'resume']) expect((await act(action, { seen: seen - 1 })).status, action).toBe(409);
    expect((await call('read', `/schedules/${fp}/nightly`)).body).toMatchObject({ state: 'paused', revision: seen });
    expect((await act('resume', { seen })).body).toMatchObject({ state: 'active', revision: seen + 1 });
    expect((await act('remove', { seen: seen + 1 })).status).toBe(200);
    expect((await call('read', `/schedules/${fp}/nightly`)).status).toBe(404);
  });

  test('changes a schedule that protected nothing on a server with protected ids: their content is stored', async () => {
    const api = await openWithTarget({ prepare: (harness) => ({ EXPUNGE_PROTECT: harness.list(['v-7', 'v-8']) }) });
    const { call, harness, redis } = api;
    const { fp } = harness.target;
    const nightly = { target: fp, name: 'nightly', cron: '0 3 * * *', from: 'expired', resource: 'views' };
    await storeSchedule(harness, 'nightly', { cron: '0 3 * * *' }, Date.now());
    const changed = await call('operate', '/schedules', post({ ...nightly, max_deletes: 60, replace: true }));
    expect(changed.status, changed.text).toBe(201);
    expect(await readSchedule(redis, fp, 'nightly')).toMatchObject({
      settings: { protect: expect.any(String) },
      protectedList: { ids: 2 },
    });
  });
});

test('a run of a schedule that is asked for over HTTP tells its source command who did so', async () => {
  const api = await openApi(onTestFinished, {
    objects: annotations(makeIds('o', 5)),
    args: ['worker', '--http', '127.0.0.1:0'],
    env: { EXPUNGE_USER: 'the-server' },
    prepare: (harness) => {
      const command = ['sh', '-c', `printf %s "$EXPUNGE_USER" > ${harness.folder}/who; echo o-000001`];
      return { EXPUNGE_CONFIG: harness.file('sources.json', JSON.stringify({ sources: { mine: { command } } })) };
    },
  });
  const { fp } = api.harness.target;
  const nightly = { target: fp, name: 'nightly', cron: '0 3 1 1 *', from: 'mine', max_deletes: 5 };
  const added = await api.call('operate', '/schedules', post({ ...nightly, resource: 'annotations' }));
  const ran = await api.call('operate', `/schedules/${fp}/nightly/run`, post({ seen: added.body.revision }));
  expect(ran.status, ran.text).toBeLessThan(300);
  expect(readFileSync(`${api.harness.folder}/who`, 'utf8')).toBe('test-operate');
});
