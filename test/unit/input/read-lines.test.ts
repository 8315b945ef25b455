import { expect, test } from 'vitest';
import { brief, collect, inputOf } from './read-text.ts';

test('takes lines byte for byte; empty ones are no rows', async () => {
  const rows = await collect([inputOf('x.txt', '\na1\r\n\n a2\n#a3\n\ta4\n   \n-a5\n\n')]);
  expect(brief(rows)).toEqual([
    'a1',
    ' a2 outer_white_space',
    '#a3 unsafe_character',
    '\ta4 control_character',
    '    outer_white_space',
    '-a5',
  ]);
  expect(rows.map((row) => row.line)).toEqual([2, 4, 5, 6, 7, 8]);
});

test('refuses a first line that is the name of the column, blank lines or not', async () => {
  await expect(collect([inputOf('x.txt', '\n\nid\na1\n')])).rejects.toThrow('x.txt:3: the first row holds "id"');
  await expect(collect([inputOf('x.txt', 'a1\nid\n')])).rejects.toThrow('x.txt:2: the row holds "id"');
  expect(brief(await collect([inputOf('x.txt', 'id\n')], { allowColumnNames: true }))).toEqual(['id']);
});

test('reads the same however the bytes arrive', async () => {
  const content = '\ufeffa1\r\nü2\n\r👍3\r\r\na4';
  const whole = await collect([inputOf('x.txt', content)]);
  expect(whole.map((row) => `${row.line} ${row.id}`)).toEqual(['1 a1', '2 ü2', '4 👍3', '6 a4']);
  for (const piece of [1, 2, 3, 5]) expect(await collect([inputOf('x.txt', content, piece)])).toEqual(whole);
});

test('rejects what stands for an id that is missing, unless it may be one', async () => {
  const file = () => inputOf('x.txt', 'a1\nNULL\n0\n');
  expect(brief(await collect([file()]))).toEqual(['a1', 'NULL placeholder', '0 placeholder']);
  expect(brief(await collect([file()], { allowPlaceholders: true }))).toEqual(['a1', 'NULL', '0']);
});

test.each([
  ...['annotation_id', 'View ID', 'view-ids', 'uuid', 'GUID', 'ID', 'viewId', 'annotationID', 'annotationUuid'],
  ...['annotation_id,title', 'title;"annotation_id"', 'name\tid', '"id"'],
])('refuses %j as the first line: it is the name of a column', async (line) => {
  await expect(collect([inputOf('x.txt', `${line}\na1\n`)])).rejects.toMatchObject({
    message: expect.stringMatching(/^x\.txt:1: the first row holds ".*", the name of a column$/),
    next: expect.stringContaining('use --format csv --column '),
  });
});

test.each([...['a-1:user_id', 'android', 'grid', 'valid', 'user_id_7', '5f-id', 'a-id-b', 'column', 'view', 'iD1']])(
  'takes %j for an id, also on the first line',
  async (line) => {
    expect(brief(await collect([inputOf('x.txt', `${line}\na1\n`)]))).toEqual([line, 'a1']);
  },
);

test.each(['["a-1","a-2"]', '[', '[ ', '  [{"id":1}]', '{"id":"a-1"}', '{', '{ "id": 1'])(
  'refuses %j as the first line: it is JSON',
  async (line) => {
    await expect(collect([inputOf('(stdin)', `${line}\n`)])).rejects.toMatchObject({
      message: '(stdin):1: the first row looks like JSON, not like an id',
      next: expect.stringMatching(line.trimStart().startsWith('[') ? /--format json$/ : /--format ndjson$|jq -c \.$/),
    });
  },
);

test.each(['[a1]', '{a1}', '[1]', '{}x'])('takes %j for an id, also on the first line', async (id) => {
  expect(brief(await collect([inputOf('x.txt', `${id}\n`)]))).toEqual([id]);
});

test('refuses a line longer than 1 MiB', async () => {
  const file = inputOf('x.txt', `a1\n${'x'.repeat(1_200_000)}\n`);
  await expect(collect([file])).rejects.toThrow('x.txt:2: a line longer than 1 MiB');
});

test.each([
  ['in the middle', Buffer.from('6131 0a 61ff62 0a'.replaceAll(' ', ''), 'hex'), 2],
  ['cut off at the end', Buffer.from('61310a6132e2', 'hex'), 2],
  ['an encoded surrogate', Buffer.from('eda0800a', 'hex'), 1],
])('refuses bytes that are not UTF-8: %s', async (_, bytes, line) => {
  for (const piece of [1, 100]) {
    await expect(collect([inputOf('x.txt', bytes, piece)])).rejects.toThrow(`x.txt:${line}: bytes that are not UTF-8`);
  }
});

test.each(['lines', 'csv', 'ndjson'] as const)('refuses a last line without an end on stdin: %s', async (format) => {
  const content = { lines: 'a1\n1234', csv: 'id\na1\n1234', ndjson: '"a1"\n"1234"' }[format];
  await expect(collect([inputOf('(stdin)', content)], { format })).rejects.toMatchObject({
    message: expect.stringContaining('the last line has no newline'),
    next: expect.stringContaining('set -o pipefail'),
  });
  expect(await collect([inputOf('(stdin)', `${content}\n`)], { format })).toHaveLength(2);
  expect(await collect([inputOf('x', content)], { format })).toHaveLength(2);
});

test('takes an empty stdin as no rows', async () => {
  expect(await collect([inputOf('(stdin)', '')])).toEqual([]);
});

test.each([
  ['x.txt', '# why\n  # too\n7 # VIP\na#b\nc\t# d # e\n#\n', ['7:3', 'a#b:4', 'c:5']],
  ['x.csv', '#made by us\nid,why\n# 7,no\n8,# kept\n"9","a\n# b"\n#\n10,\n', ['8:4', '9:5', '10:8']],
  ['x.ndjson', '# made by us\n"a"\n#"b"\n{"id":"c"}\n', ['a:2', 'c:4']],
])('leaves out the comments of %s, and keeps the lines of the rows', async (name, text, rows) => {
  const found = await collect([inputOf(name, text)], { comments: '#', allowIdChars: '#' });
  expect(found.map(({ id, line }) => `${id}:${line}`)).toEqual(rows);
});

test('takes comments for ids where no mark is given, and rejects them', async () => {
  expect(brief(await collect([inputOf('x.txt', '7 # VIP\n')]))).toEqual(['7 # VIP unsafe_character']);
});
