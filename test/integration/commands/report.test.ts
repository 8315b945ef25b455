import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

const ids = makeIds('r', 200);

test('a report of a removed run names the folder that kept it', async ({ onTestFinished }) => {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const done = await harness.run([harness.list(ids.slice(0, 3)), '--resource', 'annotations', '--yes']);
  expect(done.code).toBe(0);
  const { id } = await harness.onlyRun();
  expect(await harness.expunge(['runs', 'remove', id, '--yes'])).toMatchObject({ code: 0 });
  const folder = join(harness.stateDir, 'runs', id);
  for (const text of [id, id.slice(-4)]) {
    const { code, stderr } = await harness.expunge(['report', text]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(
        `no run is called "${text}": Redis no longer has it; its report is kept in ${folder}\n  ls ${folder}\n`,
      ),
    ]);
  }
  const unknown = await harness.expunge(['report', 'none']);
  expect(unknown.stderr).toMatch(/no run is called "none"\n/);
});

test('a report of a running run says in its last line how many rows are pending, and that the run goes on', async ({
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const running = harness.start(['run', harness.list(ids), '--resource', 'annotations', '--yes', '--rate', '20/s']);
  const { id } = await harness.runIs('deleting', ({ counts }) => counts.deleted > 0);
  const told = await harness.expunge(['report', id, '--output', 'report.csv']);
  expect(told.stderr).toMatch(/^200 rows in report\.csv, at most \d+ of them pending: the run continues$/m);
  running.signal('SIGTERM');
  expect(await running.ended).toMatchObject({ code: 143 });
  const paused = await harness.expunge(['report', id, '--output', 'report.csv']);
  expect(paused.stderr).toMatch(
    /^200 rows in report\.csv, \d+ of them pending\. Paused by .*: interrupted by SIGTERM$/m,
  );
});
