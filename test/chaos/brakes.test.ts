import { describe, test } from 'vitest';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { never, until } from '../support/processes.ts';

const ids = makeIds('b', 1_500);
const settings = { EXPUNGE_MAX_CONCURRENCY: '8', EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

const runOf = (harness: Harness, list: string, ...args: string[]) =>
  harness.run([list, '--resource', 'annotations', '--detach', '--yes', ...args], { env: settings });
const run = (harness: Harness, ...args: string[]) => runOf(harness, harness.list(ids), ...args);
const isCompleted = ({ state }: { state: string }) => state === 'completed';
const sentTo = ({ sandbox }: Harness) =>
  new Set(sandbox.seen.map((path) => decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))));

describe.concurrent('a run that must not begin or go on', () => {
  test('nothing is sent of a list that is not as expected, of a refused plan, and of one that has drifted', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 5 });
    await harness.limit('2000/s');
    await harness.worker([], settings);
    const list = harness.list(ids);
    expect(await run(harness, '--expect-count', '1600±5%')).toMatchObject({ code: 4 });
    expect(
      await harness.run([list, '--resource', 'annotations', '--detach', '--confirm', '1499'], { env: settings }),
    ).toMatchObject({ code: 2 });
    const line = [list, '--resource', 'annotations'];
    expect(await harness.expunge(['plan', ...line, '--expect-count', '1499'])).toMatchObject({ code: 4 });
    const plan = await harness.plan([...line, '--approve-by', 'ben']);
    const apply = (env = {}, confirm = '1500') =>
      harness.expunge(['apply', plan, '--confirm', confirm, '--detach'], { env: { EXPUNGE_USER: 'ben', ...env } });
    expect(await apply({}, '1499')).toMatchObject({ code: 2 });
    const byAnother = {
      code: 4,
      stderr: expect.stringMatching(/only ben may apply this plan of .*, not carl; nothing was sent/),
    };
    expect(await apply({ EXPUNGE_USER: 'carl' })).toMatchObject(byAnother);
    expect(await apply({ EXPUNGE_RATE: '9/s' })).toMatchObject({ code: 4 });
    const kept = harness.file(
      'kept.txt',
      `${ids[0]}
`,
    );
    expect(await apply({ EXPUNGE_PROTECT: kept })).toMatchObject({ code: 4 });
    expect([await harness.runs(), harness.sandbox.seen]).toEqual([[], []]);
    expect(await apply()).toMatchObject({ code: 0 });
    await harness.runIs('completed', isCompleted);
    expect(sentTo(harness).size).toBe(1_500);
    expect(await run(harness, '--expect-count', '1600±7%', '--expect-absent')).toMatchObject({ code: 0 });
  });

  test('five runs at once never exceed the limit of their target by one, also when a worker is killed', async ({
    expect,
    onTestFinished,
  }) => {
    const fails = { 'status-503': 0.2, 'reset-executed': 0.05 };
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 5, faults: fails });
    const start = () => harness.spawnWorker([], settings);
    const workers = await Promise.all([start(), start(), start(), start()]);
    const limit = (text: string) => harness.expunge(['target', 'limit', text]);
    const sent = () => harness.sandbox.seen.length;
    expect(await limit('400/s,400/day')).toMatchObject({ code: 0 });
    for (let n = 0; n < 5; n++) {
      const list = harness.file(`list-${n}.txt`, `${ids.slice(n * 300, (n + 1) * 300).join('\n')}\n`);
      expect(await runOf(harness, list)).toMatchObject({ code: 0 });
    }
    await until('the limit is used up', () => sent() === 400);
    await never('it is exceeded', () => sent() > 400, 1_500);
    expect(await limit('400/s,900/day')).toMatchObject({ code: 0 });
    await until('it is half used up', () => sent() > 600);
    workers[0]!.signal('SIGKILL'); // permits that it had leased are lost
    await until('nearly all of it is used', () => sent() > 800);
    await never('it is exceeded', () => sent() > 900, 4_000);
    expect(await limit('none')).toMatchObject({ code: 0 });
    await until('all runs are over', async () => (await harness.runs()).every(isCompleted));
  });
});
