import { join } from 'node:path';
import { describe, test } from 'vitest';
import type { FaultKind } from '../../src/sandbox/fault-kinds.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { never, until } from '../support/processes.ts';

const ids = makeIds('b', 1_500);
const settings = { EXPUNGE_MAX_CONCURRENCY: '8', EXPUNGE_RETRY_DELAYS: '50ms,50ms,50ms,50ms,50ms' };

const underWay = 4 * (4 * 8 + 8); // a window and what is on the wire, of each worker

/** Four workers, and an API that answers 409 for these ids. */
async function openFour(atEnd: AtEnd, refused: readonly string[]): Promise<Harness> {
  const script = (_resource: unknown, id: string): FaultKind | null => (refused.includes(id) ? 'status-409' : null);
  const harness = await openHarness(atEnd, { objects: annotations(ids), latencyMs: 5, faults: { script } });
  await Promise.all(Array.from({ length: 4 }, () => harness.spawnWorker(['--rate', '2000/s'], settings)));
  return harness;
}

const runOf = (harness: Harness, list: string, ...args: string[]) =>
  harness.run([list, '--resource', 'annotations', '--detach', '--yes', ...args], { env: settings });
const run = (harness: Harness, ...args: string[]) => runOf(harness, harness.list(ids), ...args);
const isHalted = ({ state }: { state: string }) => state === 'halted';
const isCompleted = ({ state }: { state: string }) => state === 'completed';
const sentTo = ({ sandbox }: Harness) =>
  new Set(sandbox.seen.map((path) => decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))));

describe.concurrent('over four workers', () => {
  test('a canary sends exactly the ids of its rung, and resumed all the others', async ({ expect, onTestFinished }) => {
    const refused = [ids[0]!, ids[5]!, ids[57]!];
    const harness = await openFour(onTestFinished, refused);
    expect(await run(harness, '--canary', '1,10,100')).toMatchObject({ code: 0 });
    for (const [n, rung] of [1, 10, 100].entries()) {
      const first = new RegExp(`^1 of the first ${rung} ids? failed`);
      const { id, halt } = await harness.runIs(
        `halted at ${rung}`,
        ({ state, reason }) => state === 'halted' && first.test(reason),
      );
      expect(halt).toBe('canary');
      expect(sentTo(harness)).toEqual(new Set(ids.slice(0, rung)));
      expect(harness.sandbox.seen.length).toBe(rung - (n + 1) + 8 * (n + 1)); // a refused id has eight attempts
      expect(await harness.expunge(['resume', id])).toMatchObject({ code: 0 });
    }
    const { counts } = await harness.runIs('completed', isCompleted);
    expect(counts).toMatchObject({ deleted: 1_497, failed: 3 });
  });

  test('--max-failures lets as many fail as it says, halts all of them at the next one, and what was under way joins', async ({
    expect,
    onTestFinished,
  }) => {
    const [few, many] = [ids.slice(0, 700), ids.slice(700)];
    const harness = await openFour(onTestFinished, [...few.slice(0, 5), ...many]);
    const args = ['--max-failures', '5', '--on-status', '409=failed'];
    const list = harness.file('few.txt', `${few.join('\n')}\n`);
    expect(await runOf(harness, list, ...args)).toMatchObject({ code: 0 });
    const completed = await harness.runIs('completed', isCompleted);
    expect(completed.counts).toMatchObject({ failed: 5, deleted: 695 });
    expect(harness.sandbox.seen).toHaveLength(700);
    const other = harness.file('many.txt', `${many.join('\n')}\n`);
    expect(await runOf(harness, other, ...args)).toMatchObject({ code: 0 });
    const halted = await until('the other run is halted', async () => (await harness.runs()).find(isHalted));
    expect(halted.halt).toBe('max_failures');
    const sent = () => harness.sandbox.seen.length - 700;
    await never('more than what was under way is sent', () => sent() > 6 + underWay, 1_500);
    const { counts } = (await harness.runs()).find(isHalted)!;
    expect(counts).toMatchObject({ deleted: 0, failed: sent() });
    expect(sent()).toBeGreaterThanOrEqual(6);
  });

  test('nothing is sent of a list that is not as expected, of a refused plan, and of one that has drifted', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openFour(onTestFinished, []);
    const list = harness.list(ids);
    const file = join(harness.folder, 'plan.json');
    const plan = (...args: string[]) =>
      harness.expunge(['plan', list, '--resource', 'annotations', '--output', file, ...args]);
    expect(await run(harness, '--expect-count', '1600±5%')).toMatchObject({ code: 4 });
    expect(
      await harness.run([list, '--resource', 'annotations', '--detach', '--confirm', '1499'], { env: settings }),
    ).toMatchObject({ code: 2 });
    expect(await plan('--expect-count', '1499')).toMatchObject({ code: 4 });
    const [, code] = /its code is (\S+)/.exec((await plan('--approve-by', 'ben')).stderr)!;
    const apply = (code: string, env = {}) =>
      harness.expunge(['apply', file, '--code', code, '--detach'], { env: { EXPUNGE_USER: 'ben', ...env } });
    expect(await apply('AAAA-AAAA')).toMatchObject({ code: 2 });
    expect(await apply(code!, { EXPUNGE_USER: 'carl' })).not.toMatchObject({ code: 0 });
    expect(await apply(code!, { EXPUNGE_RATE: '9/s' })).toMatchObject({ code: 4 });
    harness.list(ids.slice(1));
    expect(await apply(code!)).toMatchObject({ code: 4 });
    harness.list(ids);
    expect([await harness.runs(), harness.sandbox.seen]).toEqual([[], []]);
    expect(await apply(code!)).toMatchObject({ code: 0 });
    await harness.runIs('completed', isCompleted);
    expect(sentTo(harness).size).toBe(1_500);
    expect(await run(harness, '--expect-count', '1600±7%', '--expect-absent')).toMatchObject({ code: 0 });
  });

  test('five runs at once never exceed the budget of their target by one, also when a worker is killed', async ({
    expect,
    onTestFinished,
  }) => {
    const fails = { 'status-503': 0.2, 'reset-executed': 0.05 };
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), latencyMs: 5, faults: fails });
    const start = () => harness.spawnWorker(['--rate', '400/s'], settings);
    const workers = await Promise.all([start(), start(), start(), start()]);
    const budget = (text: string) => harness.expunge(['target', 'budget', text]);
    const sent = () => harness.sandbox.seen.length;
    expect(await budget('400/day')).toMatchObject({ code: 0 });
    for (let n = 0; n < 5; n++) {
      const list = harness.file(`list-${n}.txt`, `${ids.slice(n * 300, (n + 1) * 300).join('\n')}\n`);
      expect(await runOf(harness, list)).toMatchObject({ code: 0 });
    }
    await until('the budget is used up', () => sent() === 400);
    await never('it is exceeded', () => sent() > 400, 1_500);
    expect(await budget('900/day')).toMatchObject({ code: 0 });
    await until('it is half used up', () => sent() > 600);
    workers[0]!.signal('SIGKILL'); // permits that it had leased are lost
    await until('nearly all of it is used', () => sent() > 800);
    await never('it is exceeded', () => sent() > 900, 4_000);
    expect(await budget('none')).toMatchObject({ code: 0 });
    await until('all runs are over', async () => (await harness.runs()).every(isCompleted));
  });
});
