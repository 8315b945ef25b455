import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { sharedQueueName } from '../../../src/queue/queues.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openApi } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';
import { until } from '../../support/processes.ts';

async function openWithPlan() {
  const api = await openApi(onTestFinished, { objects: annotations(makeIds('l', 3)) });
  const { fp } = api.harness.target;
  await noteTarget(api.redis, api.harness.target, Date.now());
  const planned = await api.call('operate', `/plans?target=${fp}&resource=annotations`, {
    method: 'POST',
    raw: 'id\nl-000001\nl-000002\n',
    headers: { 'content-type': 'text/csv' },
  });
  const apply = (key = 'once', confirm = 2) =>
    api.call('operate', `/plans/${planned.body.plan}/apply`, {
      method: 'POST',
      body: { confirm },
      headers: { 'idempotency-key': key },
    });
  const runs = async () => (await api.call('read', '/runs')).body.items;
  return { ...api, fp, apply, runs };
}

describe('an action that fails after it was answered', () => {
  test('is answered as one that is being done, and stands in the audit trail of the run with what went wrong', async () => {
    const { harness, call, token, redis, server } = await openApi(onTestFinished);
    const run = await liveRun(harness, 'l-000001');
    await Promise.all([token('operate'), token('read')]);
    await redis.call('CLIENT', 'PAUSE', '600000', 'WRITE');
    const action = { method: 'POST', body: { reason: 'too early' } };
    const answer = await call('operate', `/runs/${run}/pause`, action);
    expect(answer, answer.text).toMatchObject({ status: 202, body: { run, state: 'running' } });
    await until('it has failed', () => server.stderr.includes('an action was not carried out'));
    await redis.call('CLIENT', 'UNPAUSE');
    const failed = await until('the trail says so', async () => {
      const { audit } = (await call('read', `/runs/${run}`)).body;
      return audit.find(({ action }: { action: string }) => action === 'failed');
    });
    expect(failed).toMatchObject({
      failedAction: 'pause',
      who: 'test-operate',
      reason: 'too early',
      by: 'operator',
      error: expect.stringContaining('Redis'),
    });
    const { stdout } = await harness.expunge(['status', run, '--audit']);
    expect(stdout).toMatch(/failed pause .*test-operate +too early/);
  });
});

describe('a request with an Idempotency-Key that breaks off', () => {
  test('before its run has started completes that run when it is repeated', async () => {
    const { fp, redis, apply, runs } = await openWithPlan();
    await redis.set(keys.targetRuns(fp), 'no set');
    const broken = await apply();
    expect(broken.status, broken.text).toBeGreaterThanOrEqual(500);
    expect(await runs()).toMatchObject([{ state: 'planned' }]);
    await redis.del(keys.targetRuns(fp));
    const again = await apply();
    expect(again.status, again.text).toBe(201);
    expect(await runs()).toMatchObject([{ run: again.body.run, state: 'running' }]);
  });

  test('after its run has started reports that run when it is repeated, though it has ended by then', async () => {
    const { harness, fp, redis, apply, runs } = await openWithPlan();
    const waiting = `${keys.queuePrefix(fp)}:${sharedQueueName}:wait`;
    await redis.set(waiting, 'no list');
    const broken = await apply();
    expect(broken.status, broken.text).toBeGreaterThanOrEqual(500);
    await redis.del(waiting);
    await harness.worker();
    const { id } = await harness.runIs('completed', ({ state }) => state === 'completed');
    await redis.hset(keys.run(id), 'delivered', Date.now()); // from now on the same list makes another run
    const again = await apply();
    expect([again.status, again.body, again.headers.get('idempotency-replayed')]).toEqual([
      ...[201, { run: id, warnings: [] }, 'true'],
    ]);
    expect((await apply()).body).toEqual({ run: id, warnings: [] });
    expect(await runs()).toHaveLength(1);
    expect((await apply('another')).body.run).not.toBe(id);
  });

  test('waits for the first one that is still being done, and is answered the same', async () => {
    const { apply, runs } = await openWithPlan();
    const answers = await Promise.all([apply(), apply(), apply()]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(new Set(answers.map(({ body }) => body.run)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.has('idempotency-replayed'))).toHaveLength(2);
    expect(await runs()).toHaveLength(1);
  });

  test('reports the run that a schedule has made for it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const config = join(folder, 'config.json');
    writeFileSync(config, JSON.stringify({ sources: { expired: { command: ['echo', 'l-000003'] } } }));
    const api = await openApi(onTestFinished, { args: ['worker', '--http', '0'], env: { EXPUNGE_CONFIG: config } });
    const { harness, redis, call } = api;
    const { fp } = harness.target;
    await noteTarget(redis, harness.target, Date.now());
    const made = { target: fp, name: 'nightly', cron: '0 3 * * *', from: 'expired', max_deletes: 5, resource: 'views' };
    expect((await call('operate', '/schedules', { method: 'POST', body: made })).status).toBe(201);
    const runNow = () =>
      call('operate', `/schedules/${fp}/nightly/run`, {
        method: 'POST',
        body: { seen: 1 },
        headers: { 'idempotency-key': 'once' },
      });
    const waiting = `${keys.queuePrefix(fp)}:${sharedQueueName}:wait`;
    await redis.set(waiting, 'no list');
    const broken = await runNow();
    expect(broken.status, broken.text).toBeGreaterThanOrEqual(500);
    await redis.del(waiting);
    const { id } = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect((await runNow()).body).toMatchObject({ schedule: 'nightly', run: id });
    expect(await harness.runs()).toHaveLength(1);
  });

  test('before it has made anything can be mended and sent again with the same key', async () => {
    const { apply, runs } = await openWithPlan();
    expect((await apply('once', 3)).status).toBe(409);
    const mended = await apply('once', 2);
    expect(mended.status, mended.text).toBe(201);
    expect(await runs()).toHaveLength(1);
  });
});
