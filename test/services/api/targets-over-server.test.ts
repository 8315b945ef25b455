import { describe, expect, onTestFinished, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { readStops } from '../../../src/limiter/stop.ts';
import type { Role } from '../../../src/model/role.ts';
import { targetOf } from '../../../src/model/target.ts';
import { type Api, openApi } from '../../support/api.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';

async function envOf({ url, token }: Api, role: Role) {
  return { EXPUNGE_SERVER: url, EXPUNGE_SERVER_TOKEN: await token(role), REDIS_URL: 'redis://127.0.0.1:1' };
}

/** What a command told and printed, without what changes with the time and the name. */
const said = (text: string) =>
  text
    .replace(/^(Redis|Server): .*\n/, '')
    .replaceAll(/"at":"[^"]*"/g, '"at":""')
    .replaceAll(/after [\d.]+ m?s|since \d\d:\d\d:\d\d|\d\d:\d\d:\d\d/g, 'T');

describe('actions to a target with --server', () => {
  const lines = [
    ...[
      ['target', 'release'],
      ['target', 'forget-rate', '--json'],
      ['start-all'],
      ['stop-all', '--reason', 'they call'],
    ],
    ...[['stop-all', '--json'], ['stop-all', '--all-accounts'], ['status'], ['start-all', '--json'], ['start-all']],
    ...[['target', 'pin-rate', '20/s', '--reason', 'as agreed'], ['target', 'pin-rate', '20/s', '--json'], ['status']],
    ...[
      ['target', 'budget', '1000/day,100/h'],
      ['target', 'budget', 'none', '--json'],
      ['target', 'pin-rate', 'none'],
    ],
    ...[
      ['target', 'pin-rate', '1/s,5/day'],
      ['target', 'budget', 'much'],
      ['target', 'grace', '10min', '--reason', 'time to object'],
      ['target', 'grace', '10min', '--json'],
      ['status'],
      ['target', 'grace', 'none'],
      ['target', 'grace', 'soon'],
    ],
  ];

  test('do and say what they do and say where Redis can be reached', async () => {
    const done: { code: number | null; stdout: string; stderr: string }[][] = [[], []];
    for (const [i, isOver] of [false, true].entries()) {
      const api = await openApi(onTestFinished, { objects: annotations(makeIds('t', 1)), account: 'acme' });
      const { harness, redis } = api;
      await liveRun(harness, 't-1');
      await noteTarget(redis, targetOf(harness.target.baseUrl, 'other'), Date.now());
      const env = isOver ? await envOf(api, 'operate') : { EXPUNGE_USER: 'test-operate' };
      const name = (text: string) =>
        said(text)
          .replaceAll(harness.target.baseUrl, 'URL')
          .replaceAll(/\d{8}-\d{4}-\w{4}/g, 'RUN');
      for (const line of lines) {
        const { code, stdout, stderr } = await harness.expunge(line, { env });
        done[i]!.push({ code, stdout: name(stdout), stderr: name(stderr) });
      }
    }
    for (const [i, line] of lines.entries()) expect(done[1]![i], line.join(' ')).toEqual(done[0]![i]);
    expect(done[1]!.map(({ code }) => code).filter((code) => code === 0).length).toBeGreaterThan(10);
  });

  test('stop a run that a worker deletes, within a second, until they are undone', async () => {
    const ids = makeIds('s', 200);
    const api = await openApi(onTestFinished, { objects: annotations(ids) });
    const { harness } = api;
    const env = await envOf(api, 'operate');
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
    const env = { ...(await envOf(api, 'operate')), EXPUNGE_ACCOUNT: '' };
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

  test('are refused for a token that may only read, and for a target that the server does not know', async () => {
    const api = await openApi(onTestFinished);
    const { harness } = api;
    await noteTarget(api.redis, harness.target, Date.now());
    const [read, operate] = [await envOf(api, 'read'), await envOf(api, 'operate')];
    for (const line of [['stop-all'], ['target', 'pin-rate', '1/s'], ['target', 'budget', '9/day']]) {
      expect(await harness.expunge(line, { env: read })).toMatchObject({ code: 5, stdout: '' });
      const elsewhere = await harness.expunge([...line, '--account', 'nobody'], { env: operate });
      expect(elsewhere).toMatchObject({ code: 2, stderr: expect.stringContaining('knows no target') });
    }
    const { stop, pinned, budget } = (await api.call('read', `/targets/${harness.target.fp}`)).body;
    expect([stop, pinned, budget]).toEqual([null, null, null]);
  });
});
