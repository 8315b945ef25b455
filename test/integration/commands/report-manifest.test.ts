import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readAudit } from '../../../src/ledger/audit.ts';
import { keys } from '../../../src/redis/keys.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';

const ids = ['a-1', 'a-2', 'a-3'];
const objects = ids.map((id) => ({ resource: 'annotations' as const, id }));

/** A run of three ids and a repeated one that has ended, with its report and the manifest of that. */
async function openEnded(atEnd: AtEnd, ...more: string[]) {
  const harness = await openHarness(atEnd, { objects });
  const list = harness.list([...ids, 'a-1']);
  const { run } = summaryIn(await harness.run([list, '--resource', 'annotations', '--yes', '--json']));
  const made = await harness.expunge(['report', run, '-o', 'report.csv', '--manifest', 'manifest.json', ...more]);
  const read = (name: string) => readFileSync(join(harness.folder, name), 'utf8');
  const check = (...flags: string[]) => harness.expunge(['report', '--check', 'manifest.json', ...flags]);
  return { harness, run, made, read, check };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

describe('the manifest of a report', () => {
  test('has the SHA-256 of the report, the list and the definitions, with the totals, and is on record', async ({
    onTestFinished,
  }) => {
    const { harness, run, made, read } = await openEnded(onTestFinished, '--json');
    const report = read('report.csv');
    const printed = { run, rows: 4, file: 'report.csv', manifest: 'manifest.json', sha256: sha256(report) };
    expect([made.code, JSON.parse(made.stdout)]).toEqual([0, { v: 1, type: 'manifest', ...printed }]);
    const manifest = JSON.parse(read('manifest.json'));
    const known = await harness.onlyRun();
    expect(manifest).toMatchObject({
      v: 1,
      type: 'manifest',
      run,
      state: 'completed',
      base_url: harness.sandbox.url,
      list_sha256: known.sha256,
      rows: 4,
      totals: { deleted: 3, duplicate: 1, failed: 0 },
      definitions: {},
      definitions_sha256: sha256(''),
      report: { format: 'csv', bytes: report.length, sha256: sha256(report) },
    });
    expect(statSync(join(harness.folder, 'manifest.json')).mode & 0o777).toBe(0o600);
    const trail = (await readAudit(harness.redis, known)).filter(({ action }) => action === 'manifest');
    expect(trail).toMatchObject([{ report_sha256: sha256(report), by: 'operator' }]);
    expect(await harness.redis.pttl(keys.audit(run))).toBeGreaterThan(0); // it goes with the run
  });

  test('holds when it is checked, and is the same when it is made again, also of a report on stdout', async ({
    onTestFinished,
  }) => {
    const { harness, run, read, check } = await openEnded(onTestFinished);
    const first = read('manifest.json');
    const checked = await check('--json');
    expect([checked.code, JSON.parse(checked.stdout)]).toMatchObject([0, { run, ok: true, differences: [] }]);
    expect(checked.stderr).toContain(`manifest.json holds: run ${run}, 4 rows`);
    const again = await harness.expunge(['report', run, '--manifest', 'manifest.json']);
    expect([again.stdout, read('manifest.json')]).toEqual([read('report.csv'), first]);
    await harness.expunge(['report', run, '--format', 'ndjson', '-o', 'report.ndjson', '--manifest', 'manifest.json']);
    expect(JSON.parse(read('manifest.json')).report.sha256).toBe(sha256(read('report.ndjson')));
    expect((await check()).code).toBe(0);
  });

  test('does not hold once any of its fields is changed, and each is named', async ({ onTestFinished }) => {
    const { harness, run, read, check } = await openEnded(onTestFinished);
    const whole = JSON.parse(read('manifest.json'));
    const changes: [path: string, changed: object][] = [
      ['state', { state: 'cancelled' }],
      ['list_sha256', { list_sha256: sha256('other') }],
      ['definitions_sha256', { definitions_sha256: sha256('other') }],
      ['totals.deleted', { totals: { ...whole.totals, deleted: 2 } }],
      ['report.sha256', { report: { ...whole.report, sha256: sha256('other') } }],
      ['labels.ticket', { labels: { ticket: 'OPS-1' } }],
      ['by_hand', { by_hand: true }],
    ];
    for (const [path, changed] of changes) {
      harness.file('manifest.json', JSON.stringify({ ...whole, ...changed }));
      const { code, stderr } = await check();
      expect([path, code, stderr]).toEqual([path, 1, expect.stringContaining(`  ${path} is `)]);
      expect(stderr).toContain(`manifest.json does not hold for run ${run}:`);
    }
  });

  test('is refused with a key twice, which a reader could take for another value', async ({ onTestFinished }) => {
    const { harness, read, check } = await openEnded(onTestFinished);
    harness.file('manifest.json', read('manifest.json').replace('"rows": 4', '"rows": 9,\n  "rows": 4'));
    expect(await check()).toMatchObject({ code: 2, stderr: expect.stringContaining('expected a manifest') });
  });

  test('comes with a report that is delivered, and does not replace it', async ({ onTestFinished }) => {
    const { harness, run, read } = await openEnded(onTestFinished);
    await harness.redis.hset(keys.run(run), 'reportIn', '');
    const report = ['report', run, '-o', 'report.csv', '--manifest'];
    const before = read('report.csv');
    const same = await harness.expunge([...report, './report.csv']);
    expect([same.code, read('report.csv')]).toEqual([2, before]);
    expect((await harness.onlyRun()).reportIn).toBe('');
    expect((await harness.expunge([...report, 'manifest.json'])).code).toBe(0);
    expect((await harness.onlyRun()).reportIn).toBe(join(harness.folder, 'report.csv'));
  });

  test('does not hold once the ledger says something else', async ({ onTestFinished }) => {
    const { harness, run, check } = await openEnded(onTestFinished);
    await harness.redis.hset(keys.run(run), 'endedAt', '1000');
    expect(await check()).toMatchObject({ code: 1, stderr: expect.stringContaining('ended_at is ') });
  });

  test('is of a whole report of a run that has ended, and of nothing else', async ({ onTestFinished }) => {
    const { harness, run, check } = await openEnded(onTestFinished);
    const made = (...args: string[]) => harness.expunge(['report', run, '--manifest', 'other.json', ...args]);
    for (const [args, flag] of [
      [['--only', 'failed'], '--only'],
      [['--format', 'html'], '--format html'],
      [['--join', 'list.txt'], '--join'],
    ] as const)
      expect(await made(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(`with ${flag}: `) });
    expect(await check('-o', 'x')).toMatchObject({ code: 2 });
    harness.file('manifest.json', '{"type":"report"}');
    expect(await check()).toMatchObject({ code: 2, stderr: expect.stringContaining('expected a manifest') });
    expect(await harness.expunge(['report'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('expunge runs'),
    });
    harness.file('more.txt', 'a-9\n');
    const { run: live } = summaryIn(
      await harness.run(['more.txt', '--resource', 'annotations', '--yes', '--detach', '--json']),
    );
    const early = await harness.expunge(['report', live, '--manifest', 'other.json']);
    expect(early).toMatchObject({ code: 2, stderr: expect.stringContaining('only a run that has ended') });
  });
});
