import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readRun } from '../../../src/ledger/run.ts';
import { openHarness } from '../../support/harness.ts';
import { tagsOf, textOf } from '../../support/html.ts';
import { annotations, makeIds } from '../../support/ids.ts';

describe('the page of a run with failures and hostile ids', () => {
  test('is in the folder of the run, in a file and on stdout, and says what happened', async ({ onTestFinished }) => {
    const ids = makeIds('p', 200);
    const script = (_: string, id: string) => (id === ids[0] ? 'status-403' : null);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids), faults: { script } });
    const list = harness.list([...ids, '<script>alert(1)</script>']);
    const flags = ['--resource', 'annotations', '--yes', '--reason', '<b>old</b>'];
    expect((await harness.run([list, ...flags])).code).toBe(3);
    const { id, counts } = await harness.onlyRun();

    const inFolder = readFileSync(join(harness.stateDir, 'runs', id, 'report.html'), 'utf8');
    const output = join(harness.folder, 'page.html');
    const { code, stderr } = await harness.expunge(['report', id, '--format', 'html', '--output', output]);
    expect([code, stderr]).toEqual([0, expect.stringContaining(`page in ${output}`)]);
    expect(statSync(output).mode & 0o777).toBe(0o600);
    const page = readFileSync(output, 'utf8');
    expect((await harness.expunge(['report', id, '--format', 'html'])).stdout).toBe(page);

    for (const one of [inFolder, page]) {
      expect(tagsOf(one).some(({ name }) => name === 'script' || name === 'a')).toBe(false);
      expect(tagsOf(one).filter(({ name }) => name === 'svg').length).toBeGreaterThanOrEqual(2);
      const text = textOf(one);
      const said = [`failed ${counts.failed}`, ids[0]!, 'http_403 · 1', '<script>alert(1)</script>', '<b>old</b>'];
      for (const words of [...said, 'completed', 'submit', list]) expect(text).toContain(words);
      expect(one).not.toContain(harness.sandbox.token);
    }
  });

  test('is no report of the run, which lists its rows', async ({ onTestFinished }) => {
    const ids = makeIds('p', 5);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    await harness.worker();
    await harness.run([harness.list(ids), '--resource', 'annotations', '--detach', '--yes']);
    const { id } = await harness.runIs('completed', ({ state }) => state === 'completed');
    const output = join(harness.folder, 'page.html');
    const done = await harness.expunge(['report', id, '--format', 'html', '--output', output, '--json']);
    expect(JSON.parse(done.stdout)).toMatchObject({ type: 'report', rows: 5, format: 'html', file: output });
    expect((await readRun(harness.redis, id))!.reportIn).toBe('');
    for (const [option, words] of [
      [['--only', 'failed'], 'a page shows the whole run'],
      [['--spreadsheet-safe'], 'html leaves them as they are'],
    ] as const) {
      const refused = await harness.expunge(['report', id, '--format', 'html', ...option]);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(words)]);
    }
  });
});
