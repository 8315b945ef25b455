import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readRun } from '../../../src/ledger/run.ts';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';

const objects = ['a-1', 'a-2', 'a-3', 'a-4', 'a-5'].map((id) => ({ resource: 'annotations' as const, id }));
const script = (_: string, id: string) => (id === 'a-2' ? 'status-403' : null);

/** A run of these files, and its report with the outcomes behind their columns. */
async function openJoin(atEnd: AtEnd, files: Record<string, string | Buffer>, ...flags: string[]) {
  const harness = await openHarness(atEnd, { objects, faults: { script } });
  harness.file('keep.txt', 'a-3\n');
  for (const [name, content] of Object.entries(files)) harness.file(name, content);
  const names = Object.keys(files);
  const line = ['run', ...names, '--resource', 'annotations', '--yes', '--json', ...flags];
  const { run } = summaryIn(await harness.expunge(line));
  const joined = (...more: string[]) => harness.expunge(['report', run, '--join', ...names, ...more]);
  return { harness, run, joined };
}

/** Without times and ids of requests. */
function plain(text: string): string {
  return text.replaceAll(/20\d\d-[^;,]+Z/g, 'TIME').replaceAll(/\[[-0-9a-f]{36}\]/g, '[ID]');
}

const list = 'id,owner\na-1,ann\na-2,bob\na-3,eve\n';
const header = 'id,owner,outcome,status,attempts,settled_at,code,excerpt';

describe('a report that is joined', () => {
  test('keeps each line of the list as it is, with its outcome behind it', async ({ onTestFinished }) => {
    const odd = 'id;owner;note\r\na-1;ann;"x ""y"";\r\nz"\r\n\r\na-2; bob;\r\na-2;bob;\r\na/7;eve;é\r\na-3;;\r\na-4;;';
    const flags = ['--delimiter', ';', '--protect', 'keep.txt', '--allow-open-end'];
    const { joined } = await openJoin(onTestFinished, { 'odd.csv': odd }, ...flags);
    const { code, stdout } = await joined('--delimiter', ';');
    expect([code, plain(stdout).split('\r\n')]).toEqual([
      0,
      [
        'id;owner;note;outcome;status;attempts;settled_at;code;excerpt',
        'a-1;ann;"x ""y"";',
        'z";deleted;204;1;TIME;http_204;',
        'a-2; bob;;failed;403;1;TIME;http_403;"[ID] {""error"":""sandbox_403""}"',
        'a-2;bob;;duplicate;;0;;duplicate;first at odd.csv:5',
        'a/7;eve;é;rejected;;0;;unsafe_character;',
        'a-3;;;protected;;0;;protected;',
        'a-4;;;deleted;204;1;TIME;http_204;',
        '',
      ],
    ]);
  });

  test.each([
    ['a name of a column', 'id,n\na-1,1\nview_id,2\n', ['--allow-column-names']],
    [
      'rounded numbers',
      'id,n\n1234567890123450,1\n1234567890123460,2\n9876543210987600,3\n',
      ['--allow-damaged-numbers'],
    ],
  ])('takes a list with %s that its run was told to accept', async (_, text, flags) => {
    const { joined } = await openJoin(onTestFinished, { 'odd.csv': text }, '--detach', ...flags);
    const { code, stdout, stderr } = await joined();
    expect([code, stderr, stdout.split('\n').length]).toEqual([0, expect.anything(), text.split('\n').length]);
  });

  test('has the rows that --only chooses, in a file that is no whole report', async ({ onTestFinished }) => {
    const { harness, run, joined } = await openJoin(onTestFinished, { 'old.csv': list }, '--detach');
    await harness.expunge(['cancel', run, '--yes']);
    const { stdout } = await joined('--only', 'not_attempted', '--limit', '3', '--output', 'rest.csv', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ type: 'report', rows: 3, file: 'rest.csv' });
    const [first, ...rows] = readFileSync(join(harness.folder, 'rest.csv'), 'utf8').trimEnd().split('\n');
    expect([first, rows.length]).toEqual([header, 3]);
    expect(rows[0]).toMatch(/^a-1,ann,not_attempted,,0,20\S+,run_cancelled,$/);
    expect(await readRun(harness.redis, run)).toMatchObject({ reportIn: '' });
  });

  test('is of all files of the run, also compressed ones, and tells its columns from theirs', async ({
    onTestFinished,
  }) => {
    const one = 'id,outcome\na-1,old\n';
    const files = { 'one.csv': one, 'two.csv.gz': gzipSync('id,outcome\na-4,older\n') };
    const { joined } = await openJoin(onTestFinished, files);
    expect(plain((await joined()).stdout)).toBe(
      'id,outcome,expunge_outcome,status,attempts,settled_at,code,excerpt\n' +
        'a-1,old,deleted,204,1,TIME,http_204,\na-4,older,deleted,204,1,TIME,http_204,\n',
    );
  });

  test('is of the rows that a run with --limit took', async ({ onTestFinished }) => {
    const { joined } = await openJoin(onTestFinished, { 'old.csv': list }, '--limit', '2');
    expect((await joined()).stderr).toContain('it has no row for old.csv:4');
    const { code, stdout } = await joined('--limit', '2');
    expect([code, stdout.trimEnd().split('\n').length]).toEqual([0, 3]);
  });

  test('of a run that goes on says what is pending', async ({ onTestFinished }) => {
    const { joined } = await openJoin(onTestFinished, { 'old.csv': list }, '--detach');
    expect((await joined()).stdout.split('\n')[1]).toBe('a-1,ann,pending,,0,,,');
  });
});

describe('files that are not those of the run', () => {
  test.for([
    ['with another id', list.replace('a-2', 'a-5'), 'old.csv:3 holds "a-5", not "a-2"'],
    ['with rows in another order', 'id,owner\na-2,bob\na-1,ann\na-3,eve\n', 'old.csv:2 holds "a-2", not "a-1"'],
    [
      'with a line before',
      `id,owner\n\n${list.slice(9)}`,
      'its next row is in line 2, the next row of the file is old.csv:3',
    ],
    ['that is cut off', 'id,owner\na-1,ann\na-2,bob\n', 'its row old.csv:4 is missing'],
    ['with a row more', `${list}a-4,ann\n`, 'it has no row for old.csv:5'],
  ] as const)('%s are refused, and nothing is written', async ([, content, why], { onTestFinished }) => {
    const { harness, run, joined } = await openJoin(onTestFinished, { 'old.csv': list }, '--detach');
    harness.file('old.csv', content);
    const { code, stdout, stderr } = await joined();
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(`the rows of run ${run}: ${why}`)]);
    expect((await joined('--output', 'joined.csv')).code).toBe(2);
    expect(existsSync(join(harness.folder, 'joined.csv'))).toBe(false);
  });

  test('as they are read now are refused, too', async ({ onTestFinished }) => {
    const { harness, run, joined } = await openJoin(onTestFinished, { 'old.csv': list }, '--detach');
    harness.file('other.csv', 'name\nx\n');
    const join = (...args: string[]) => harness.expunge(['report', run, '--join', ...args]);
    expect((await joined('--column', 'owner')).stderr).toContain('old.csv:2 holds "ann", not "a-1"');
    expect((await joined('--resource', 'views')).stderr).toContain('old.csv:2 is of views, not of annotations');
    expect((await join('old.csv', 'old.csv')).stderr).toContain('was made of old.csv; --join got 2 files');
    expect((await join('-')).stderr).toContain('--join needs CSV files, and (stdin) is not one');
    expect((await join('keep.txt')).stderr).toContain('and keep.txt is not one');
    expect((await join('other.csv')).stderr).toContain('no column "id"');
    expect((await joined('--verify')).stderr).toContain('--verify cannot be combined with --only or --join');
    expect((await joined('--format', 'ndjson')).stderr).toContain('omit --format ndjson, or --join');
  });

  test('with other columns than the first make no one table', async ({ onTestFinished }) => {
    const files = { 'one.csv': 'id,a\na-1,1\n', 'two.csv': 'id,b\na-2,1\n' };
    const { joined } = await openJoin(onTestFinished, files, '--detach');
    const { code, stdout, stderr } = await joined();
    expect([code, stdout, stderr]).toEqual([
      2,
      '',
      expect.stringContaining('two.csv:1: its header differs from the header of one.csv'),
    ]);
  });
});
