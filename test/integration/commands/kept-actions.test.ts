import { describe, expect, onTestFinished, test } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { stopTarget } from '../../../src/ledger/steer-target.ts';
import { readStops } from '../../../src/limiter/stop.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openApi, overServer } from '../../support/api.ts';
import { type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';
import { until } from '../../support/processes.ts';

// An action that finds its goal reached by somebody weaker is kept, and lifted by its own counterpart only.

const ids = makeIds('k', 20);
const as = (name: string) => ({ env: { EXPUNGE_USER: name } });

/** A run of 20 ids that Ctrl-C has stopped after a few; the command line that made it. */
async function openInterrupted(harness: Harness) {
  harness.file('ids.csv', `id\n${ids.join('\n')}\n`);
  const line = ['ids.csv', '--resource', 'annotations', '--yes'];
  const first = harness.start(['run', ...line, '--rate', '10/s']);
  await until('some are deleted', () => harness.sandbox.seen.length >= 3);
  first.signal('SIGINT');
  await first.ended;
  const { id } = await harness.onlyRun();
  return { id, line };
}

async function actionsOf(harness: Harness): Promise<string[]> {
  const run = await harness.onlyRun();
  const entries = await readAudit(harness.redis, run);
  return entries.map(({ action, by, who, reason }) => `${action} ${by} ${who} ${reason}`.trim());
}

describe('a pause by an operator', () => {
  test('of a run that a signal has paused holds: the same `run` command sends nothing until `resume`', async () => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const { id, line } = await openInterrupted(harness);
    const paused = await harness.expunge(['pause', id, '--reason', 'legal hold'], as('ana'));
    expect([paused.code, paused.stderr]).toEqual([0, expect.stringContaining(`Run ${id} was paused already`)]);
    expect(paused.stderr).toContain('from now on only this resumes it: expunge resume');
    expect(await harness.onlyRun()).toMatchObject({
      state: 'paused',
      by: 'operator',
      who: 'ana',
      reason: 'legal hold',
    });
    expect(await actionsOf(harness)).toContain('pause operator ana legal hold');

    const sent = harness.sandbox.seen.length;
    const again = harness.start(['run', ...line, '--json']);
    await until('it follows the run', () => again.stdout.includes('"type":"progress"'));
    again.signal('SIGINT');
    await again.ended;
    expect(harness.sandbox.seen.length).toBe(sent);

    expect((await harness.expunge(['resume', id], as('bob'))).code).toBe(0);
    expect((await harness.run(line)).code, 'negative control').toBe(0);
    expect(harness.sandbox.seen.length).toBe(20);
  });

  test('of a run whose time was up is kept over HTTP, too', async () => {
    const api = await openApi(onTestFinished, { objects: annotations(ids) });
    const { harness, call } = api;
    const run = await liveRun(harness, 'k-000001');
    await harness.redis.hset(keys.run(run), {
      state: 'paused',
      by: 'guard',
      who: '',
      halt: 'time_up',
      reason: 'the moment',
    });
    const answer = await call('operate', `/runs/${run}/pause`, { method: 'POST', body: { reason: 'legal hold' } });
    expect(answer.body).toMatchObject({ state: 'paused', changed: true });
    expect(await harness.onlyRun()).toMatchObject({ by: 'operator', reason: 'legal hold', halt: '' });
    harness.file('k-000001.csv', 'id\nk-000001\n');
    await harness.run(['k-000001.csv', '--resource', 'views', '--detach', '--yes']);
    expect((await harness.onlyRun()).state).toBe('paused');
    const again = await call('operate', `/runs/${run}/pause`, { method: 'POST', body: { reason: 'legal hold' } });
    expect(again.body, 'the same action again').toMatchObject({ state: 'paused', changed: false });
  });

  test('of a run that a colleague has paused outlasts what the colleague resumes', async () => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const run = await liveRun(harness, 'k-000002');
    await harness.expunge(['pause', run, '--reason', 'too slow'], as('ana'));
    const second = await harness.expunge(['pause', run, '--reason', 'legal hold'], as('bob'));
    expect(second.stderr).toContain(`Run ${run} was paused already, by ana: too slow.`);
    const resumed = await harness.expunge(['resume', run], as('ana'));
    expect([resumed.code, resumed.stderr]).toEqual([
      0,
      expect.stringContaining(`Run ${run} stays paused by bob: legal hold.`),
    ]);
    expect((await harness.onlyRun()).state).toBe('paused');
    expect((await harness.expunge(['resume', run], as('ana'))).stderr).toContain(`Resumed run ${run}`);
    expect((await harness.onlyRun()).state).toBe('running');
    expect(await actionsOf(harness)).toEqual(
      expect.arrayContaining(['pause operator ana too slow', 'pause operator bob legal hold', 'start operator ana']),
    );
  });

  test('of a halted run keeps the same command from resuming it', async () => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const run = await liveRun(harness, 'k-000003');
    await harness.redis.hset(keys.run(run), { state: 'halted', by: 'guard', halt: 'max_failures', reason: 'too many' });
    const paused = await harness.expunge(['pause', run, '--reason', 'legal hold'], as('ana'));
    expect([paused.code, paused.stderr]).toEqual([0, expect.stringContaining(`Run ${run} was halted already`)]);
    const line = ['k-000003.csv', '--resource', 'views', '--detach', '--yes'];
    await harness.run(line);
    expect(await harness.onlyRun()).toMatchObject({ state: 'halted', halt: 'max_failures' });
    await harness.expunge(['resume', run], as('bob'));
    expect((await harness.onlyRun()).state, 'negative control').toBe('running');
  });
});

describe('a second `stop-all`', () => {
  test('is kept beside that of a colleague, and lifted by itself', async () => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    await liveRun(harness, 'k-000004');
    const { fp } = harness.target;
    await harness.expunge(['stop-all', '--reason', 'an incident'], as('ana'));
    const second = await harness.expunge(['stop-all', '--reason', 'legal hold'], as('bob'));
    expect(second.stderr).toContain('are stopped already, by ana: an incident');
    expect(second.stderr).toContain('Your stop is kept as well');
    const started = await harness.expunge(['start-all'], as('ana'));
    expect(started.stderr).toContain('stay stopped by bob: legal hold');
    expect((await readStops(harness.redis, fp)).target).toMatchObject({ who: 'bob', reason: 'legal hold' });
    const again = await harness.expunge(['start-all'], as('ana'));
    expect(again.stderr).toContain('continue');
    expect((await readStops(harness.redis, fp)).target).toBeNull();
    const trail = (await harness.redis.lrange(keys.targetAudit(fp), 0, -1)).map((line) => JSON.parse(line));
    expect(trail.reverse().map(({ action, who }) => `${action} ${who}`)).toEqual([
      ...['stop-all ana', 'stop-all bob', 'start-all ana', 'start-all ana'],
    ]);
  });

  test('over HTTP says whether it changed anything', async () => {
    const api = await openApi(onTestFinished, { objects: annotations(ids) });
    await liveRun(api.harness, 'k-000005');
    const { fp } = api.harness.target;
    await stopTarget(api.redis, fp, { who: 'ana', reason: 'an incident', at: Date.now() });
    const stop = () => api.call('operate', `/targets/${fp}/stop`, { method: 'POST', body: { reason: 'legal hold' } });
    expect((await stop()).body).toMatchObject({ changed: true });
    expect((await stop()).body, 'the same action again').toMatchObject({ changed: false });
    const seen = async () => (await api.call('read', `/targets/${fp}`)).body.revision;
    const start = async () =>
      api.call('operate', `/targets/${fp}/start`, { method: 'POST', body: { reason: '', seen: await seen() } });
    expect((await start()).body).toMatchObject({ changed: true, stop: { who: 'ana' } });
    expect((await start()).body).toMatchObject({ changed: true, stop: null });
  });
});

describe('an action says what it changed, not what it wanted', () => {
  test('of a run that is so already, by the command and over a server', async () => {
    const api = await openApi(onTestFinished, { objects: annotations(ids) });
    const { harness } = api;
    const run = await liveRun(harness, 'k-000006');
    const server = {
      ...as('ana').env,
      ...(await overServer(api)),
    };
    for (const options of [as('ana'), { env: server }]) {
      expect((await harness.expunge(['resume', run], options)).stderr).toContain(`Run ${run} was running already`);
      expect((await harness.expunge(['pause', run], options)).stderr).toContain(`Paused run ${run}`);
      expect((await harness.expunge(['pause', run], options)).stderr).toContain(`Run ${run} was paused already`);
      expect((await harness.expunge(['resume', run], options)).stderr).toContain(`Resumed run ${run}`);
    }
    await harness.expunge(['cancel', run, '--yes'], as('ana'));
    expect((await harness.expunge(['cancel', run, '--yes'])).stderr).toContain(`Run ${run} was cancelled already`);
  });
});

describe('a run that is being prepared', () => {
  /** Its producer was killed while it wrote the list; the same command writes it to the end. */
  async function openPreparing() {
    const api = await openApi(onTestFinished, { objects: annotations(ids) });
    const run = await liveRun(api.harness, 'k-000007');
    await api.redis.hset(keys.run(run), { state: 'preparing' });
    await api.redis.hdel(keys.run(run), 'startedAt', 'changes', 'activeUntil');
    await api.redis.del(keys.open(run), keys.audit(run));
    await api.redis.hset(keys.run(run), 'next', 0);
    const finish = () => api.harness.run(['k-000007.csv', '--resource', 'views', '--detach', '--yes']);
    return { ...api, run, finish };
  }

  test('is paused once it is written', async () => {
    const { harness, run, finish } = await openPreparing();
    const paused = await harness.expunge(['pause', run, '--reason', 'legal hold'], as('ana'));
    expect([paused.code, paused.stderr]).toEqual([
      0,
      expect.stringContaining(`Run ${run} is still being written. It will be paused then, and send nothing.`),
    ]);
    await finish();
    expect(await harness.onlyRun()).toMatchObject({
      state: 'paused',
      by: 'operator',
      who: 'ana',
      reason: 'legal hold',
    });
    expect(await actionsOf(harness)).toContain('pause operator ana legal hold');
    await harness.expunge(['resume', run]);
    expect((await harness.onlyRun()).state).toBe('running');
  });

  test('is cancelled once it is written, also over HTTP', async () => {
    const { harness, run, finish, call } = await openPreparing();
    const body = { reason: 'wrong list', left: 1, shown: 1 };
    const answer = await call('operate', `/runs/${run}/cancel`, { method: 'POST', body });
    expect([answer.status, answer.body.state]).toEqual([200, 'preparing']);
    await finish();
    expect(await harness.onlyRun()).toMatchObject({ state: 'cancelled', who: 'test-operate', reason: 'wrong list' });
    expect(harness.sandbox.seen).toEqual([]);
  });

  test('starts by itself where nobody asked for anything', async () => {
    const { harness, finish } = await openPreparing();
    await finish();
    expect((await harness.onlyRun()).state).toBe('running');
  });
});

test('a run that is removed right after its end is told of as ended', async () => {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const run = await liveRun(harness, 'k-000008');
  const { fp } = harness.target;
  await harness.expunge(['cancel', run, '--yes'], as('ana'));
  expect(await harness.redis.hgetall(keys.outboxEvents(fp))).toEqual({});
  expect((await harness.expunge(['runs', 'remove', run, '--yes'])).code).toBe(0);
  const events = Object.values(await harness.redis.hgetall(keys.outboxEvents(fp))).map((event) => JSON.parse(event));
  expect(events.map(({ type, data }) => [type, data.run])).toContainEqual(['run.cancelled', run]);
  expect(await harness.redis.smembers(keys.targetRuns(fp))).toEqual([]);
});
