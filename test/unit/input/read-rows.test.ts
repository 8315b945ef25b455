import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { readRows } from '../../../src/input/read-rows.ts';
import { brief, collect, inputOf, options } from './read-text.ts';

const ids = Array.from({ length: 5000 }, (_, n) => `id-${n}-é`);
const contents = {
  'x.csv': `id,name\n${ids.map((id) => `${id},x\n`).join('')}`,
  'x.tsv': `name\tid\n${ids.map((id) => `x\t${id}\n`).join('')}`,
  'x.ndjson': ids.map((id) => `${JSON.stringify({ id })}\n`).join(''),
  'x.json': JSON.stringify(
    ids.map((id, n) => (n % 2 === 0 ? { id, n } : id)),
    null,
    1,
  ),
  'x.txt': ids.map((id) => `${id}\n`).join(''),
};
const packings = { '': (text: string) => text, '.gz': gzipSync, '.zst': zstdCompressSync };
const cases = Object.entries(contents).flatMap(([name, text]) =>
  Object.entries(packings).map(([ending, pack]) => [name + ending, pack(text)] as const),
);

test.each(cases)('reads the same ids from %s', async (name, content) => {
  expect(brief(await collect([inputOf(name, content)]))).toEqual(ids);
});

test('tells packed stdin by its first bytes, even when they come one by one', async () => {
  expect(brief(await collect([inputOf('(stdin)', gzipSync('a1\na2\n'), 1)]))).toEqual(['a1', 'a2']);
  await expect(collect([inputOf('(stdin)', gzipSync('a1\na2'))])).rejects.toThrow('the last line has no newline');
});

test('reads all members of a gzip file', async () => {
  const file = inputOf('x.txt', Buffer.concat([gzipSync('a1\n'), gzipSync('a2\n')]));
  expect(brief(await collect([file]))).toEqual(['a1', 'a2']);
});

const packed = zstdCompressSync('a1\na2\n');
test.each([
  ['gzip that is cut off', gzipSync('a1\na2\n').subarray(0, -3), 'the gzip data is cut off'],
  ['gzip with something behind it', Buffer.concat([gzipSync('a1\n'), Buffer.from('rest')]), 'the gzip data is damaged'],
  ['zstd that is cut off', packed.subarray(0, -3), 'the zstd data is cut off'],
  ['several zstd frames', Buffer.concat([packed, packed]), 'something follows the first zstd frame'],
  ['a spreadsheet', Buffer.from('PK\x03\x04....'), 'a ZIP archive or a spreadsheet'],
])('refuses %s', async (_, content, message) => {
  await expect(collect([inputOf('x.txt', content)])).rejects.toThrow(message);
});

test('reads a gzip bomb of one line no further than 1 MiB', async () => {
  const file = inputOf('x.txt', gzipSync(Buffer.alloc(64 * 1024 * 1024, 'x')));
  await expect(collect([file])).rejects.toThrow('x.txt:1: a line longer than 1 MiB');
});

test('reads several files of several formats in their order', async () => {
  const files = [inputOf('b.txt', 'b1\n'), inputOf('a.csv', 'id\na1\n'), inputOf('c.jsonl', '"c1"\n')];
  expect((await collect(files)).map((row) => [row.file, row.line, row.id])).toEqual([
    [0, 1, 'b1'],
    [1, 2, 'a1'],
    [2, 1, 'c1'],
  ]);
});

test('asks for the format where the name does not tell it', async () => {
  await expect(collect([inputOf('ids.dat.gz', 'a1\n')])).rejects.toThrow('unknown format');
  expect(await collect([inputOf('ids.dat.gz', 'a1\n')], { format: 'lines' })).toHaveLength(1);
  expect(await collect([inputOf('ids.dat', '["a1"]')], { format: 'json' })).toHaveLength(1);
});

test.each([
  [{ resource: null }, 'exactly one of --resource and --resource-column'],
  [{ resourceColumn: 'kind' }, 'exactly one of --resource and --resource-column'],
  [{ resource: null, resourceColumn: 'kind', noHeader: true }, '--no-header says there is none'],
  [{ resource: null, resourceColumn: 'kind' }, 'plain lines have no columns'],
])('refuses options that contradict each other: %j', async (changes, message) => {
  await expect(collect([inputOf('x.txt', 'a1\n')], changes)).rejects.toThrow(message);
});

test('refuses --no-header with a column, which only a header can name', async () => {
  const wrong = { column: '2', noHeader: true };
  const message = '--no-header takes the ids from the first column, and --column 2 names one';
  await expect(collect([inputOf('x.csv', '7,a1\n')], wrong)).rejects.toThrow(message);
  expect(brief(await collect([inputOf('x.txt', 'a1\n')], wrong))).toEqual(['a1']);
});

test('hands over at most 1,000 rows at a time', async () => {
  for await (const rows of readRows([inputOf('x.txt', 'a\n'.repeat(2500))], options)) {
    expect(rows.length).toBeLessThanOrEqual(1000);
  }
});

test('yields the rows before a mistake, so that a trial of the first rows works', async () => {
  const batches = readRows([inputOf('x.csv', 'id,name\na1,x\na2\n')], options);
  expect(brief((await batches.next()).value ?? [])).toEqual(['a1']);
  await expect(batches.next()).rejects.toThrow('x.csv:3: expected 2 cells, got 1');
});

test('closes the file when the reader leaves early', async () => {
  let closed = false;
  const file = inputOf('x.txt', '');
  async function* open() {
    try {
      for (;;) yield Buffer.from('a1\n');
    } finally {
      closed = true;
    }
  }
  for await (const rows of readRows([{ ...file, open }], options)) if (rows.length > 0) break;
  expect(closed).toBe(true);
});
