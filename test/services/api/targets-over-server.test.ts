import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { readStops } from '../../../src/limiter/stop.ts';
import { targetOf } from '../../../src/model/target.ts';
import { openApi, overServer } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';

describe('actions to a target with --server', () => {
  test('stop a run that a worker deletes until they are undone', async () => {
    const ids = makeIds('s', 60);
    const api = await openApi(onTestFinished, { objects: annotations(ids) });
    const { harness } = api;
    const env = await overServer(api, 'operate');
    const list = harness.list(ids);
    await harness.run([list, '--resource', 'annotations', '--detach', '--yes', '--rate', '40/s']);
    await harness.worker();
    await harness.runIs('under way', ({ counts }) => counts.deleted > 3);
    const stopped = await harness.expunge(['stop-all', '--reason', 'they call us'], { env });
    expect(stopped).toMatchObject({ code: 0, stderr: expect.stringContaining('1 live run (running) and 1 process') });
    expect((await readStops(api.redis, harness.target.fp)).target).toMatchObject({ who: 'test-operate' });
    expect(await harness.expunge(['start-all'], { env })).toMatchObject({ code: 0 });
    await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(harness.sandbox.remaining()).toBe(0);
  });

  test('stop and start all accounts of a base URL, also where only accounts with a name are known', async () => {
    const api = await openApi(onTestFinished, { objects: annotations(makeIds('a', 1)), account: 'acme' });
    const { harness, redis } = api;
    const env = { ...(await overServer(api, 'operate')), EXPUNGE_ACCOUNT: '' };
    const targets = [harness.target, targetOf(harness.target.baseUrl, 'beta')];
    await liveRun(harness, 'a-1');
    await noteTarget(redis, targets[1]!, Date.now());
    await noteTarget(redis, targetOf('https://other.example.com', 'acme'), Date.now());
    const stops = () => Promise.all(targets.map(async ({ fp }) => (await readStops(redis, fp)).target?.who));
    const stopped = await harness.expunge(['stop-all', '--all-accounts', '--json'], { env });
    expect(stopped.code, stopped.stderr).toBe(0);
    const accounts = stopped.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).account);
    expect([accounts.sort(), await stops()]).toEqual([
      ['acme', 'beta'],
      ['test-operate', 'test-operate'],
    ]);
    expect(await harness.expunge(['start-all', '--all-accounts'], { env })).toMatchObject({ code: 0 });
    expect(await stops()).toEqual([undefined, undefined]);
    const elsewhere = ['stop-all', '--all-accounts', '--base-url', 'https://nobody.example.com'];
    expect(await harness.expunge(elsewhere, { env })).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('knows no target'),
    });
  });
});
