import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { brief, collect, inputOf } from './read-text.ts';

/** The first block of a tar archive, as far as it is looked at. */
function tarOf(magic: string): Buffer {
  const block = Buffer.alloc(1_024);
  block.write('ids.csv');
  block.write(magic, 257, 'latin1');
  return block;
}

const bzip2 = Buffer.from('BZh91AY&SY....');
const xz = Buffer.from('\xfd7zXZ\0....', 'latin1');
const posixTar = tarOf('ustar\x0000');
const zip = Buffer.from('PK\x03\x04....');

test.each<[name: string, content: Buffer, words: string, next: string]>([
  ['a.csv.xz', xz, 'packed with xz', 'xz -dk a.csv.xz\nthen the same command with a.csv'],
  ['a b.csv.xz', xz, 'packed with xz', "xz -dk 'a b.csv.xz'\nthen the same command with 'a b.csv'"],
  ['a.xz', xz, 'packed with xz', 'xz -dk a.xz\nthen the same command with a and its --format'],
  ['-a.csv.xz', xz, 'packed with xz', 'xz -dk ./-a.csv.xz\nthen the same command with ./-a.csv'],
  ['a.csv', xz, 'packed with xz', 'xz -dc < a.csv > a.unpacked.csv\nthen the same command with a.unpacked.csv'],
  ['(stdin)', xz, 'packed with xz', 'filter it where it comes from: … | xz -dc'],
  ['x.d/a.txt.bz2', bzip2, 'packed with bzip2', 'bzip2 -dk x.d/a.txt.bz2\nthen the same command with x.d/a.txt'],
  ['a.tar.xz', xz, 'packed with xz', 'tar -xkf a.tar.xz\nthen the same command with the files that were in it'],
  ['a.tar', posixTar, 'a tar archive', 'tar -xkf a.tar\nthen the same command with the files that were in it'],
  ['a.tar', tarOf('ustar  \0'), 'a tar archive', 'tar -xkf a.tar'],
  ['a.tar.gz', gzipSync(posixTar), 'a tar archive, packed with gzip', 'tar -xkf a.tar.gz'],
  ['a.csv', zstdCompressSync(posixTar), 'a tar archive, packed with zstd', 'tar -xkf a.csv'],
  ['(stdin)', gzipSync(posixTar), 'a tar archive, packed with gzip', 'unpack it where it comes from'],
  ['a.zip', zip, 'a ZIP archive or a spreadsheet', 'unzip -n a.zip'],
  ['a.xlsx', zip, 'a ZIP archive or a spreadsheet', 'save it as CSV'],
  ['a.xlsx.gz', gzipSync(zip), 'a ZIP archive or a spreadsheet, packed with gzip', 'gzip -dk a.xlsx.gz'],
  [
    'a.parquet',
    Buffer.from('PAR1\x15\x04'),
    'a Parquet file',
    `duckdb -c "copy (select id from 'a.parquet') to 'ids.csv' (header)"\nthen the same command with ids.csv`,
  ],
  ['(stdin)', Buffer.from('PAR1\x15\x04'), 'a Parquet file', 'export its ids as CSV first'],
  ['a.csv', Buffer.from('SQLite format 3\0'), 'an SQLite database', "sqlite_scan('a.csv', 'TABLE')"],
  ['a.csv', Buffer.from('Obj\x01....'), 'an Avro file', "read_avro('a.csv')"],
  ["it's.avro", Buffer.from('Obj\x01....'), 'an Avro file', "read_avro('it''s.avro')"],
  [
    'a.csv',
    Buffer.from('ORC\x0a\x03....\x00'.replace('\x0a', '\x08')),
    'an ORC or Arrow file',
    'export its ids as CSV first',
  ],
  ['a.csv', Buffer.from('ARROW1\0\0'), 'an ORC or Arrow file', 'export its ids as CSV first'],
  ['a.csv', Buffer.from('7z\xbc\xaf\x27\x1c', 'latin1'), 'a 7z archive', '7z x -aos a.csv'],
  [
    'a.csv',
    Buffer.from('\xd0\xcf\x11\xe0\xa1', 'latin1'),
    'a spreadsheet or another document of Office',
    'save it as CSV',
  ],
  ['a.csv', Buffer.from('%PDF-1.4\n'), 'a PDF', 'export the ids as CSV first'],
  ['a.csv', Buffer.from('\n<!DOCTYPE html>\n'), 'a web page', 'may need a login'],
  ['a.csv', Buffer.from('\ufeff<?xml version="1.0"?>'), 'XML', 'export the ids as CSV first'],
  [
    'a.txt',
    Buffer.from('version https://git-lfs.github.com/spec/v1\n'),
    'a pointer to a file in Git LFS',
    'git lfs pull',
  ],
])('%s is no list: %j', async (name, content, words, next) => {
  for (const piece of [1, 100_000])
    await expect(collect([inputOf(name, content, piece)], { format: 'lines' })).rejects.toMatchObject({
      code: 'USAGE',
      message: `${name}: this is ${words}`,
      next: expect.stringContaining(next),
    });
});

test.each([
  ['of another format', Buffer.concat([xz, randomBytes(300)])],
  ['that is a packed archive', gzipSync(Buffer.concat([posixTar, randomBytes(200_000)]))],
  ['in UTF-16', Buffer.concat([Buffer.from('fffe', 'hex'), Buffer.alloc(300, 'a\0')])],
])('what gives a list %s is closed: it may be a process', async (_, content) => {
  let isClosed = false;
  async function* open() {
    try {
      yield content;
      for (;;) {
        await setImmediate();
        yield Buffer.from('more');
      }
    } finally {
      isClosed = true;
    }
  }
  await expect(collect([{ ...inputOf('x.txt', ''), open }])).rejects.toMatchObject({ code: 'USAGE' });
  await expect.poll(() => isClosed).toBe(true);
});

test.each(['https://lists.example.com/a.csv.xz', 'inbox (command psql)'])(
  'no command is given for a list that is no file here: %s',
  async (name) => {
    await expect(collect([inputOf(name, xz)], { format: 'csv' })).rejects.toMatchObject({
      next: 'filter it where it comes from: … | xz -dc',
    });
  },
);

test.each(['BZh9', 'PAR1-2024', 'PK', `${'a1\n'.repeat(85)}xxustar00`, `${'x\n'.repeat(128)}\nustar  1`])(
  'ids that resemble another format are ids: %j',
  async (text) => {
    expect(brief(await collect([inputOf('x.txt', `${text}\n`)], { allowIdChars: ' ' })).at(-1)).toBe(
      text.split('\n').at(-1),
    );
  },
);

test.each<[mark: string, encoding: string]>([
  ['fffe', 'UTF-16'],
  ['feff', 'UTF-16'],
  ['fffe0000', 'UTF-32'],
  ['0000feff', 'UTF-32'],
])('the byte order mark %s is that of %s', async (mark, encoding) => {
  const content = Buffer.concat([Buffer.from(mark, 'hex'), Buffer.from('6100', 'hex')]);
  const next = (read: string) => `${read}iconv -f ${encoding} -t UTF-8`;
  for (const [name, packed, advice] of [
    ['a b.csv', content, `${next('')} 'a b.csv' > 'a b.utf-8.csv'\nthen the same command with 'a b.utf-8.csv'`],
    ['a.csv.gz', gzipSync(content), `${next('gzip -dc a.csv.gz | ')} > a.utf-8.csv`],
    ['(stdin)', content, next('filter it where it comes from: … | ')],
  ] as const)
    await expect(collect([inputOf(name, packed)], { format: 'csv' })).rejects.toMatchObject({
      message: `${name}: expected UTF-8, got ${encoding}`,
      next: expect.stringContaining(advice),
    });
});
