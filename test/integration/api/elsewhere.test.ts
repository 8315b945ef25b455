import { rmSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { targetOf } from '../../../src/model/target.ts';
import { keys } from '../../../src/redis/keys.ts';
import { readAudit, readSchedule } from '../../../src/schedule/schedule-store.ts';
import { type Api, openApi } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';

const post = (body: object = {}) => ({ method: 'POST', body });
const other = targetOf('https://other.example.com', 'other');

/** A worker of one target, whose configuration file has a list; and another target. */
async function openWorker(env: NodeJS.ProcessEnv = {}) {
  const api = await openApi(onTestFinished, {
    args: ['worker', '--http', '0'],
    env,
    prepare: ({ file }) => {
      const list = file('here.csv', 'id\nhere-1\nhere-2\n');
      const sources = { expired: { glob: list, settle: '0s' } };
      return { EXPUNGE_CONFIG: file('sources.json', JSON.stringify({ sources })) };
    },
  });
  await noteTarget(api.redis, other, Date.now());
  return api;
}

function addTo({ call }: Api, target: string, more: object = {}) {
  const nightly = { target, name: 'nightly', cron: '0 3 * * *', from: 'expired', max_deletes: 50, resource: 'views' };
  return call('operate', '/schedules', post({ ...nightly, ...more }));
}

describe('a schedule that is run now', () => {
  test('has its list from a worker of its own target, and from no other server', async () => {
    const api = await openWorker();
    const { call, harness } = api;
    const { fp } = harness.target;
    for (const target of [fp, other.fp]) expect((await addTo(api, target)).status).toBe(201);
    const seen = 1;
    const refused = await call('operate', `/schedules/${other.fp}/nightly/run`, post({ seen }));
    expect(refused.body).toMatchObject({ status: 409, code: 'conflict', next: expect.stringContaining('worker') });
    expect((await call('read', '/runs')).body.items).toEqual([]);
    expect((await call('read', '/me')).body.worker_of).toBe(fp);
    const made = await call('operate', `/schedules/${fp}/nightly/run`, post({ seen }));
    expect(made.status, made.text).toBe(200);
    expect((await call('read', '/runs')).body.items).toMatchObject([{ rows: 2, target: harness.target.baseUrl }]);
  });

  test('is refused by a dashboard, which is a worker of nothing', async () => {
    const api = await openApi(onTestFinished);
    const { call, harness, redis } = api;
    await noteTarget(redis, harness.target, Date.now());
    await addTo(api, harness.target.fp);
    const refused = await call('operate', `/schedules/${harness.target.fp}/nightly/run`, post({ seen: 1 }));
    expect(refused.body).toMatchObject({ status: 409, code: 'conflict' });
    expect((await call('read', '/me')).body.worker_of).toBeNull();
  });
});

describe('an action for another target', () => {
  test('goes by none of the settings that its server was started with', async () => {
    const env = { EXPUNGE_EXPECT_ABSENT: 'true', EXPUNGE_ON_STATUS: '409=failed', EXPUNGE_MAX_FAILURES: '99' };
    const more = { EXPUNGE_ALLOW_PLACEHOLDERS: 'true', EXPUNGE_COLUMN: 'key', EXPUNGE_RATE: '900/s' };
    const api = await openWorker({ ...env, ...more });
    const { call } = api;
    const upload = { method: 'POST', raw: 'id\nb-1\nNULL\n', headers: { 'content-type': 'text/csv' } };
    const planned = await call('operate', `/plans?target=${other.fp}&resource=views&canary=1`, upload);
    expect(planned.status, planned.text).toBe(201);
    expect(planned.body.changed_rules).toEqual({ '--resource': 'views', '--canary': '1' });
    expect(planned.body).toMatchObject({ confirm: 1, rejected: { placeholder: 1 } });
    expect((await addTo(api, other.fp)).body.settings).toEqual({ maxDeletes: '50', resource: 'views' });
    const run = (await call('operate', `/plans/${planned.body.plan}/apply`, post({ confirm: 1 }))).body.run;
    const expected = { rate: null, on_status: null, max_failures: null, expect_absent: false };
    expect((await call('read', `/runs/${run}`)).body.settings).toMatchObject({ ...expected, canary: '1' });
    await call('operate', `/runs/${run}/pause`, post());
    await call('operate', `/runs/${run}/cancel`, post({ left: 1, shown: 1 }));
    const retried = await call('operate', `/runs/${run}/retry`, post({ confirm: 1 }));
    expect(retried.status, retried.text).toBe(201);
    expect((await call('read', `/runs/${retried.body.run}`)).body.settings).toMatchObject(expected);
  });

  test('may say another rate than its server has', async () => {
    const { call, harness } = await openWorker({ EXPUNGE_RATE: '900/s' });
    const upload = { method: 'POST', raw: 'id\nb-1\n', headers: { 'content-type': 'text/csv' } };
    const planned = await call('operate', `/plans?target=${harness.target.fp}&resource=views&rate=5/s`, upload);
    const made = await call('operate', `/plans/${planned.body.plan}/apply`, post({ confirm: 1 }));
    expect(made.status, made.text).toBe(201);
    expect((await call('read', `/runs/${made.body.run}`)).body.settings.rate).toBe('5/s');
  });
});

describe('a schedule that is changed', () => {
  test('stays as it is in all that the action does not name', async () => {
    const { call, harness, redis } = await openApi(onTestFinished);
    const { fp } = harness.target;
    const protect = harness.file('protect.csv', 'id\nkeep-1\n');
    const more = [
      '--at-most',
      '10',
      '--canary',
      '5',
      '--retry-failed',
      '--limit',
      '40',
      '--delimiter',
      ';',
      '--rate',
      '5/s',
    ];
    const brakes = [
      '--max-growth',
      '2',
      '--missed',
      'latest',
      '--keep',
      '60d',
      '--heartbeat',
      'https://beat.example.com/1',
    ];
    const names = ['--cron', '0 3 * * *', '--tz', 'Europe/Berlin', '--from', 'expired', '--max-deletes', '50'];
    const args = [...names, '--resource', 'views', '--protect', protect, '--reason', 'policy', ...more, ...brakes];
    const added = await harness.expunge(['schedule', 'add', 'nightly', ...args]);
    expect(added.code, added.stderr).toBe(0);
    const before = (await readSchedule(redis, fp, 'nightly'))!;
    rmSync(protect); // it is on the machines of the workers
    const change = { target: fp, name: 'nightly', cron: '0 4 * * *', from: 'expired', max_deletes: 60, replace: true };
    const changed = await call('operate', '/schedules', post({ ...change, canary: null }));
    expect(changed.status, changed.text).toBe(201);
    const { canary: _, ...settings } = before.settings;
    const { changedAt, after, who, revision, ...kept } = before;
    const now = await readSchedule(redis, fp, 'nightly');
    expect(now).toMatchObject({ ...kept, cron: '0 4 * * *', settings: { ...settings, maxDeletes: '60' } });
    expect(now!.settings).not.toHaveProperty('canary');
  });

  test('keeps why it exists, and its audit trail gives the reason of who changed it only', async () => {
    const { call, harness, redis } = await openApi(onTestFinished);
    const { fp } = harness.target;
    await noteTarget(redis, harness.target, Date.now());
    const nightly = { target: fp, name: 'nightly', from: 'expired', max_deletes: 50, resource: 'views', replace: true };
    await call('operate', '/schedules', post({ ...nightly, cron: '0 3 * * *', reason: 'ticket 1' }));
    await call('admin', '/schedules', post({ ...nightly, cron: '0 4 * * *' }));
    expect((await readSchedule(redis, fp, 'nightly'))!.note).toBe('ticket 1');
    await call('admin', '/schedules', post({ ...nightly, cron: '0 5 * * *', reason: 'ticket 2' }));
    expect((await readSchedule(redis, fp, 'nightly'))!.note).toBe('ticket 2');
    expect(await readAudit(redis, fp, 'nightly')).toMatchObject([
      { action: 'change', who: 'test-admin', reason: 'ticket 2' },
      { action: 'change', who: 'test-admin', reason: '' },
      { action: 'add', who: 'test-operate', reason: 'ticket 1' },
    ]);
  });
});

describe('a list without protected ids', () => {
  test('is not left to the workers of a target of which one names some', async () => {
    const api = await openApi(onTestFinished, { objects: annotations(['o-000001', 'o-000002']) });
    const { call, harness, redis } = api;
    const { fp } = harness.target;
    await noteTarget(redis, harness.target, Date.now());
    const upload = { method: 'POST', raw: 'id\no-000001\no-000002\n', headers: { 'content-type': 'text/csv' } };
    const plan = (server = call) => server('operate', `/plans?target=${fp}&resource=annotations`, upload);
    const early = await plan(); // no worker has said anything yet
    const submit = ['submitted.csv', '--resource', 'annotations', '--detach', '--yes', '--rate', '1/min'];
    harness.file('submitted.csv', `id\n${makeIds('s', 9).join('\n')}\n`);
    expect((await harness.run(submit)).code).toBe(0);
    const protect = harness.file('protect.csv', 'id\no-000001\n');
    const foreground = await liveRun(harness, 'o-000009');
    await redis.hset(keys.run(foreground), 'detached', '');
    const worker = await harness.worker(['--http', '0'], { EXPUNGE_PROTECT: protect });
    const isRefused = { status: 409, code: 'guard', next: expect.stringContaining('--protect') };
    expect((await plan()).body).toMatchObject(isRefused);
    const applied = await call('operate', `/plans/${early.body.plan}/apply`, post({ confirm: 2 }));
    expect(applied.body).toMatchObject(isRefused);
    await call('operate', `/runs/${foreground}/pause`, post());
    const seen = (await call('operate', `/runs/${foreground}`)).body.revision;
    const resumed = await call('operate', `/runs/${foreground}/resume`, post({ detach: true, seen }));
    expect(resumed.body).toMatchObject(isRefused);
    harness.file('list.csv', upload.raw);
    const args = ['list.csv', '--resource', 'annotations', '--detach', '--yes', '--json'];
    expect(await harness.run(args)).toMatchObject({ code: 4, stderr: expect.stringContaining('protects no ids') });
    expect((await harness.run(submit)).code).toBe(0); // the workers have it already
    const url = /http:\/\/[\d.]+:\d+/.exec(worker.stderr)![0];
    const atWorker = await fetch(`${url}/api/v1/plans?target=${fp}&resource=annotations`, {
      method: 'POST',
      body: upload.raw,
      headers: { ...upload.headers, authorization: `Bearer ${await api.token('operate')}` },
    });
    expect(await atWorker.json()).toMatchObject({ confirm: 1, counts: { protected: 1 } });
    expect((await harness.run([...args, '--protect', protect])).code).toBe(0);
  });
});
