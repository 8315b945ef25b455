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
    const plan = await harness.expunge(['plan', harness.list(ids), ...line]);
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
});
