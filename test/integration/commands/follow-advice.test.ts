import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';

const ids = ['a-000001', 'a-000002', 'a-000003'];
const csv = `id\n${ids.join('\n')}\n`;

function has(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** What a program makes of the text of a list. */
function made(program: string, args: string[], text = csv): Buffer {
  return execFileSync(program, args, { input: text });
}

/** An archive that holds the list as `old ids.csv`. */
function tarOf(folder: string, flags: string): Buffer {
  const inside = join(folder, 'inside');
  mkdirSync(inside);
  execFileSync('sh', ['-c', 'cat > "old ids.csv"'], { cwd: inside, input: csv });
  const archive = execFileSync('tar', [flags, '-', 'old ids.csv'], { cwd: inside });
  rmSync(inside, { recursive: true });
  return archive;
}

type Case = [name: string, words: string, needs: string, make: (folder: string) => Buffer];

const cases: Case[] = [
  ["it's old.csv.xz", 'this is packed with xz', 'xz', () => made('xz', ['-c'])],
  ['old ids.xz', 'this is packed with xz', 'xz', () => made('xz', ['-c'])],
  ['old ids.csv', 'this is packed with xz', 'xz', () => made('xz', ['-c'])],
  ['$old.csv.bz2', 'this is packed with bzip2', 'bzip2', () => made('bzip2', ['-c'])],
  [
    'old ids.csv.zst',
    'something follows the first zstd frame',
    'zstd',
    () => Buffer.concat([zstdCompressSync(csv.slice(0, 12)), zstdCompressSync(csv.slice(12))]),
  ],
  ['old ids.tar', 'this is a tar archive', 'tar', (folder) => tarOf(folder, '-cf')],
  ['old.tar.gz', 'this is a tar archive, packed with gzip', 'tar', (folder) => tarOf(folder, '-czf')],
  ['old ids.csv', 'expected UTF-8, got UTF-16', 'iconv', () => made('iconv', ['-f', 'UTF-8', '-t', 'UTF-16'])],
  ['old ids.csv', 'expected UTF-8, got UTF-32', 'iconv', () => made('iconv', ['-f', 'UTF-8', '-t', 'UTF-32'])],
  [
    'old ids.csv.gz',
    'expected UTF-8, got UTF-16',
    'iconv',
    () => gzipSync(made('iconv', ['-f', 'UTF-8', '-t', 'UTF-16'])),
  ],
  [
    'old ids.csv',
    'bytes that are not UTF-8',
    'iconv',
    () =>
      made('iconv', ['-f', 'UTF-8', '-t', 'WINDOWS-1252'], `name,id\n${ids.map((id) => `\u00fc,${id}\n`).join('')}`),
  ],
];

describe('a list that is refused is deleted when its advice was followed:', () => {
  test.for(cases)('%s, %s', async ([name, words, needs, make], { skip, expect, onTestFinished }) => {
    if (!has(needs)) skip();
    const { file, folder, run, sandbox } = await openHarness(onTestFinished, { objects: { annotations: 3 } });
    file(name, make(folder));
    const more = ['--resource', 'annotations', '--yes'];
    const refused = await run([name, ...more]);
    expect([refused.code, sandbox.counts.requests]).toEqual([2, 0]);
    expect(refused.stderr).toMatch(new RegExp(`^error: .*${words}`));
    const lines = refused.stderr.trimEnd().split('\n');
    const [command = '', then = ''] = lines.slice(-2).map((line) => line.trim());
    execFileSync('sh', ['-c', command], { cwd: folder });
    const mended = await run([...namedIn(then, folder), ...more]);
    expect([mended.code, mended.stderr]).toEqual([0, expect.stringContaining('3 ids')]);
    expect(ids.filter((id) => sandbox.exists('annotations', id))).toEqual([]);
  });
});

/** What to name now, as a shell reads it; the file of an archive by the name it has there. */
function namedIn(advice: string, folder: string): string[] {
  const [, words = ''] = /^then the same command with (.*)$/.exec(advice) ?? [];
  if (words === 'the files that were in it') return ['old ids.csv'];
  const [, written = '', format = ''] = /^(.*?)( and its --format)?$/.exec(words) ?? [];
  const name = execFileSync('sh', ['-c', `printf %s ${written}`], { cwd: folder, encoding: 'utf8' });
  return format === '' ? [name] : [name, '--format', 'csv'];
}
