import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const ids = makeIds('p', 20);
const line = ['--resource', 'annotations'];

describe.concurrent('what a pipe gets', () => {
  test('of a dry run and of a plan the plan, since that is their result', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const dry = await harness.expunge(['run', harness.list(ids), ...line, '--dry-run']);
    expect(dry.stdout).toMatch(/20 annotations to delete[\s\S]*Dry run: nothing was sent/);
    expect(dry.stderr).not.toContain('to delete');
    const plan = await harness.expunge([
      'plan',
      harness.list(ids),
      ...line,
      '--output',
      join(harness.folder, 'plan.json'),
    ]);
    expect(plan.stdout).toContain('20 annotations to delete');
    const run = await harness.expunge(['run', harness.list(ids), ...line, '--yes']);
    expect([run.stdout, run.stderr]).toEqual(['', expect.stringContaining('20 annotations to delete')]);
  });

  test('with --json only JSON, and the plan is for people', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const dry = await harness.expunge(['run', harness.list(ids), ...line, '--dry-run', '--json']);
    expect(JSON.parse(dry.stdout)).toMatchObject({ type: 'plan', rows: 20 });
    expect(dry.stderr).toContain('20 annotations to delete');
  });

  test('of status --watch how the run ended, with its exit code', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects: annotations(ids.slice(1)) });
    await harness.expunge(['run', harness.list(ids), ...line, '--yes', '--max-failures', '10']);
    const watch = () => harness.onlyRun().then(({ id }) => harness.expunge(['status', id, '--watch']));
    const { code, stdout } = await watch();
    expect([code, stdout]).toEqual([0, expect.stringMatching(/Completed[\s\S]*submitted by/)]);
  });

  test.each([
    ['halted', ['--max-deletes', '5', '--partial'], 4],
    ['paused', [], 0],
  ] as const)('a watch of a run that is %s ends', async (state, args, exit) => {
    const closing: (() => Promise<void>)[] = [];
    const harness = await openHarness((task) => closing.push(task), { objects: annotations(ids), latencyMs: 50 });
    await harness.expunge(['run', harness.list(ids), ...line, '--yes', ...args, ...(exit === 0 ? ['--detach'] : [])]);
    const { id } = await harness.onlyRun();
    if (state === 'paused') await harness.expunge(['pause', id]);
    const { code, stdout } = await harness.expunge(['status', id, '--watch']);
    expect([code, stdout]).toEqual([exit, expect.stringContaining(state === 'halted' ? 'Halted' : 'Paused')]);
    for (const close of closing) await close();
  });
});
