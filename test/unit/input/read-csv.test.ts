import { expect, test } from 'vitest';
import { readCsvRecords } from '../../../src/input/read-csv.ts';
import { brief, collect, fixture, inputOf, options } from './read-text.ts';

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
  ['stray-quote.csv', ':3: a quote in the row that begins here is inside a cell'],
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
  ['proto-column.csv', { column: 'name' }, 'as in --column id; or'],
])('says what to do when %s lacks the column', async (name, changes, next) => {
  await expect(fixture(name, changes)).rejects.toMatchObject({ next: expect.stringContaining(next) });
});

test.each([
  ['7,x\n8,y\n', '7', 'add --no-header if the first line holds an id already'],
  ['a-000000,n\na-000001,n\n', 'a-000000', 'add --no-header if the first line holds an id already'],
  ['alpha,x\nbeta,y\n', 'a', 'name the column of the ids, as in --column NAME; or add --no-header'],
])('never advises the first id as a column, and does not take it for one: %j', async (text, column, next) => {
  await expect(collect([inputOf('x.csv', text)])).rejects.toMatchObject({ next: expect.stringContaining(next) });
  if (column === 'a') return;
  await expect(collect([inputOf('x.csv', text)], { column })).rejects.toMatchObject({
    message: expect.stringMatching(/^x\.csv:1: the header ".*" looks like an id, as ".*" below it; nothing was sent$/),
    next: expect.stringContaining('--no-header'),
  });
  expect(await collect([inputOf('x.csv', text)], { column, allowColumnNames: true })).toHaveLength(1);
});

test('lists the columns there are, and the one that was meant', async () => {
  const file = inputOf('x.csv', 'user_id,name\na,b\n');
  await expect(collect([file], { column: 'user_ids' })).rejects.toThrow(
    'x.csv:1: no column "user_ids" in the header, which has: "user_id", "name". Did you mean user_id?',
  );
});

test.each([
  ['user_id,annotation_id', 'annotation_id'],
  ['user_id,uuid', 'uuid'],
  ['view_id,_id', '_id'],
  ['view_id,name,post_id', 'post_id'],
  ['view_id,name', 'NAME'],
])('advises of %s the column %s, and none with ids of another resource', async (header, column) => {
  await expect(collect([inputOf('x.csv', `${header}\n${header.replace(/[^,]+/g, 'a')}\n`)])).rejects.toMatchObject({
    next: `name the column of the ids, as in --column ${column}; or add --no-header if the first line holds an id already`,
  });
});

test('takes the resource of each row from a column, and rejects all but the two exact words', async () => {
  const rows = await fixture('mixed-resources.csv', { resource: null, resourceColumn: 'kind' });
  expect(rows.map((row) => row.resource)).toEqual(['annotations', 'views', null, null, null]);
  expect(brief(rows).slice(2)).toEqual(['a2 misspelt_resource', 'a3 misspelt_resource', 'a4 unknown_resource']);
});

test('takes the first column where there is no header', async () => {
  const rows = await collect([inputOf('x.csv', 'a1,x\na2,y\n')], { noHeader: true });
  expect(brief(rows)).toEqual(['a1', 'a2']);
});

test('refuses a header that would be taken as an id', async () => {
  const file = inputOf('x.csv', 'id,name\na1,x\n');
  await expect(collect([file], { noHeader: true })).rejects.toThrow('x.csv:1: the first row holds "id"');
});

test.each([
  ['annotation_id\na1\n', 'annotation_id'],
  ['name,annotation_id\nx,a1\n', 'annotation_id'],
  ['uuid,name\na1,x\n', 'uuid'],
])('refuses --no-header for %j, which has one', async (content, column) => {
  await expect(collect([inputOf('x.csv', content)], { noHeader: true })).rejects.toMatchObject({
    message: `x.csv:1: the first row holds "${column}", the name of a column`,
    next: expect.stringContaining(`--column ${column}, without --no-header`),
  });
});

test('takes a row with the name of a column beside an id where there is no header', async () => {
  expect(brief(await collect([inputOf('x.csv', 'a-1,user_id\na-2,user_id\n')], { noHeader: true }))).toEqual([
    'a-1',
    'a-2',
  ]);
});

test.each([
  ['"id";"name"\n"a1";"x"\n', {}, "';'"],
  ['id;"name"\na1;"x"\n', {}, "';'"],
  ['"id"\t"name"\n', {}, 'tab'],
  ['"id"|"a; b"\n', {}, "'|'"],
  ['"id","name"\n', { delimiter: ';' }, ','],
  ['"a1";"x"\n', { noHeader: true }, "';'"],
])(
  'suggests the delimiter of %j, in which quotes seem to stand inside of cells',
  async (content, changes, delimiter) => {
    await expect(collect([inputOf('x.csv', content)], changes)).rejects.toMatchObject({
      next: expect.stringContaining(`try --delimiter ${delimiter}`),
    });
  },
);

test('suggests no other delimiter where the quotes are at fault', async () => {
  await expect(collect([inputOf('x.csv', 'id,name\na"1,x;y\n')])).rejects.toMatchObject({
    next: 'a cell with quotes must be quoted, and each quote in it doubled',
  });
});

test('says what to do about rows of different length', async () => {
  await expect(fixture('ragged-row.csv')).rejects.toMatchObject({
    next: expect.stringContaining('must be quoted'),
  });
});

test('refuses a row longer than 1 MiB, as one quote makes of a whole file', async () => {
  const file = inputOf('x.csv', `id\na1\n"${'x\n'.repeat(600_000)}`);
  await expect(collect([file])).rejects.toThrow('x.csv:3: the row that begins here is longer than 1 MiB');
});

test('keeps cells as they are', async () => {
  const file = inputOf('x.csv', 'id\n" a"\n"b c"\n"d""e"\n"f\ng"\n');
  expect(brief(await collect([file]))).toEqual([' a outer_white_space', 'b c', 'd"e', 'f\ng control_character']);
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

test('gives each record as it is in the file, beside the row that it makes', async () => {
  const records = ['id,"a ""b"""', 'a1,"x\ny\r\n"', ' a2 ,', '"a3",é'];
  for (const lineEnd of ['\n', '\r\n', '\r']) {
    const text = `${lineEnd}${records.join(lineEnd + lineEnd)}${lineEnd}`;
    const found = [];
    const read = readCsvRecords({ file: 0, name: 'x.csv', format: 'csv' }, piecesOf(text, 3), csvOptions);
    for await (const some of read) found.push(...some);
    expect(found.map((record) => record.text)).toEqual(records);
    expect(found.map(({ row }) => row?.id)).toEqual([undefined, 'a1', ' a2 ', 'a3']);
    expect(found[0]!.hasCarriageReturn).toBe(lineEnd !== '\n');
  }
});

const csvOptions = { ...options, resource: 'views' } as const;

/** The text in pieces of so many characters. */
async function* piecesOf(text: string, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size));
}
