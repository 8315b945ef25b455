import { expect, test } from 'vitest';
import { brief, collect, fixture, inputOf } from './read-text.ts';

test.each([
  ['mixed-line-ends.csv', ['a1', 'a2', 'a3', 'a4']],
  ['quoted-newline.csv', ['a1', 'a2', 'a3']],
  ['byte-order-mark.csv', ['a1']],
  ['proto-column.csv', ['a1']],
  ['tabs.tsv', ['a1']],
  ['blank-lines.csv', ['a1', 'empty_id']],
  ['repeated-header.csv', ['a1', 'id repeated_header', 'a2']],
  ['spreadsheet-damage.csv', ['1.23457E+17 spreadsheet_number', '9E+5 spreadsheet_number', '007', '1e3']],
])('reads %s', async (name, rows) => {
  expect(brief(await fixture(name))).toEqual(rows);
});

test.each([
  ['mixed-line-ends.csv', [2, 3, 4, 5]],
  ['quoted-newline.csv', [2, 4, 7]],
  ['blank-lines.csv', [3, 5]],
])('numbers the lines of %s as an editor does', async (name, lines) => {
  expect((await fixture(name)).map((row) => row.line)).toEqual(lines);
});

test.each([
  ['unclosed-quote-at-the-end.csv', ':5: a quote opens in the row that begins here and is never closed'],
  ['stray-quote.csv', ':3: a quote in the row that begins here stands inside a cell'],
  ['ragged-row.csv', ':3: expected 2 cells, got 3'],
  ['duplicate-column.csv', ':1: two columns are named "id"'],
  ['utf-16.csv', ': expected UTF-8, got UTF-16'],
  ['latin-1.csv', ':3: bytes that are not UTF-8'],
])('refuses %s and says where', async (name, message) => {
  await expect(fixture(name)).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(`${name}${message}`),
  });
});

test.each([
  ['semicolons.csv', {}, "try --delimiter ';'"],
  ['tabs.tsv', { delimiter: ';' }, 'try --delimiter tab'],
  ['report-for-spreadsheets.csv', {}, 'id_safe holds ids changed for spreadsheets'],
  ['proto-column.csv', { column: 'name' }, 'name the column with --column'],
])('says what to do when %s lacks the column', async (name, changes, next) => {
  await expect(fixture(name, changes)).rejects.toMatchObject({ next: expect.stringContaining(next) });
});

test('lists the columns there are, and the one that was meant', async () => {
  const file = inputOf('x.csv', 'user_id,name\na,b\n');
  await expect(collect([file], { column: 'user_ids' })).rejects.toThrow(
    'x.csv:1: no column "user_ids" in the header, which has: "user_id", "name". Did you mean user_id?',
  );
});

test('takes the resource of each row from a column, and rejects all but the two exact words', async () => {
  const rows = await fixture('mixed-resources.csv', { resource: null, resourceColumn: 'kind' });
  expect(rows.map((row) => row.resource)).toEqual(['annotations', 'views', null, null, null]);
  expect(brief(rows).slice(2)).toEqual(['a2 unknown_resource', 'a3 unknown_resource', 'a4 unknown_resource']);
});

test('takes the first column where there is no header', async () => {
  const rows = await collect([inputOf('x.csv', 'a1,x\na2,y\n')], { noHeader: true });
  expect(brief(rows)).toEqual(['a1', 'a2']);
});

test('refuses a header that would be taken as an id', async () => {
  const file = inputOf('x.csv', 'id,name\na1,x\n');
  await expect(collect([file], { noHeader: true })).rejects.toThrow('x.csv:1: the first id is "id"');
});

test('refuses a row longer than 1 MiB, as one quote makes of a whole file', async () => {
  const file = inputOf('x.csv', `id\na1\n"${'x\n'.repeat(600_000)}`);
  await expect(collect([file])).rejects.toThrow('x.csv:3: the row that begins here is longer than 1 MiB');
});

test('keeps cells as they are', async () => {
  const file = inputOf('x.csv', 'id\n" a"\n"b,c"\n"d""e"\n"f\ng"\n');
  expect(brief(await collect([file]))).toEqual([' a outer_white_space', 'b,c', 'd"e', 'f\ng control_character']);
});

test('reads the same however the bytes arrive', async () => {
  const content = '\ufeffid,note\r\na1,"é\r\n👍"\r\n\r\nü2,x\na3,"""q"""';
  const whole = await collect([inputOf('x.csv', content)]);
  expect(whole.map((row) => [row.id, row.line])).toEqual([
    ['a1', 2],
    ['ü2', 5],
    ['a3', 6],
  ]);
  for (const piece of [1, 2, 3, 5, 7]) expect(await collect([inputOf('x.csv', content, piece)])).toEqual(whole);
});
