import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openInputs } from '../../../src/input/open-inputs.ts';
import { readProtected } from '../../../src/input/read-protected.ts';
import { brief, collect, noStdin, options } from './read-text.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'expunge-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, content: string): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

test('looks at every file before the first is read', async () => {
  const paths = [write('a.txt', 'a1\n'), join(folder, 'b.txt')];
  await expect(openInputs(paths, noStdin())).rejects.toMatchObject({
    code: 'USAGE',
    message: `${paths[1]}: not found`,
  });
});

test('refuses a folder, and stdin named twice', async () => {
  mkdirSync(join(folder, 'x.csv'));
  await expect(openInputs([join(folder, 'x.csv')], noStdin())).rejects.toThrow('expected a file, got a folder');
  await expect(openInputs(['-', '-'], noStdin())).rejects.toThrow('stdin can be read only once');
});

test.each([
  ['grows', (path: string) => appendFileSync(path, 'a2\n')],
  ['is replaced', (path: string) => renameSync(write('new.txt', 'b1\n'), path)],
  ['is removed', (path: string) => rmSync(path)],
])('refuses a file that %s while it is read', async (_, change) => {
  const path = write('a.txt', 'a1\n');
  const files = await openInputs([path], noStdin());
  const bytes = files[0]!.open()[Symbol.asyncIterator]();
  await bytes.next();
  change(path);
  const rest = async () => {
    while (!(await bytes.next()).done); // what was added may come before the end is noticed
  };
  await expect(rest()).rejects.toThrow(/the file changed while it was read|not found/);
});

test('judges the last line of a named pipe as that of stdin', async () => {
  const path = join(folder, 'pipe.txt');
  execFileSync('mkfifo', [path]);
  const files = await openInputs([path], noStdin());
  const writing = writeFile(path, 'a1\n12');
  await expect(collect(files)).rejects.toThrow('the last line has no newline');
  await writing;
});

async function protectedIn(path: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const batch of readProtected({ path, column: null }, options)) ids.push(...batch);
  return ids;
}

test('reads protected ids one a line, or from a CSV by its name', async () => {
  expect(await protectedIn(write('protect', 'a1\na2\n'))).toEqual(['a1', 'a2']);
  expect(await protectedIn(write('protect.csv', 'name,id\nx,a1\n'))).toEqual(['a1']);
});

test('refuses a protected id that cannot match any: it would protect nothing', async () => {
  const path = write('protect', 'a1\na2 \n');
  await expect(protectedIn(path)).rejects.toThrow(`${path}:2: "a2 " would protect no id`);
});

test.each([
  ['keep.txt', 'a1\na2,\na3\n', 'a2,'],
  ['keep.txt', 'a1\n"a2"\n', '"a2"'],
  ['keep.txt', "a1\n'a2'\n", "'a2'"],
  ['keep.txt', 'a1\na2 a3\n', 'a2 a3'],
  ['keep.txt', 'a1\na2,a3\n', 'a2,a3'],
  ['keep.txt', 'a1\na2 # Anna\n', 'a2 # Anna'],
  ['keep.txt', 'a1\na2\tAnna\n', 'a2\tAnna'],
  ['keep.txt', 'a1\na2\u200b3\n', 'a2\u200b3'],
  ['keep.txt', 'a1\nNULL\n', 'NULL'],
  ['keep.csv', 'id\n a1\n', ' a1'],
])('refuses %s for the row %j, naming it: it would protect nothing', async (name, content, row) => {
  const path = write(name, content);
  await expect(protectedIn(path)).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(`would protect no id`),
  });
  const clean = content.replace(row, 'a9');
  expect(await protectedIn(write(name, clean))).toContain('a9');
});

test('refuses a protect file whose last id may be cut off', async () => {
  const path = write('keep.txt', 'a1\na2');
  await expect(protectedIn(path)).rejects.toThrow(`${path}:2: the last line has no newline`);
});

test('reads a protect file by a column of its own', async () => {
  const path = write('keep.csv', 'name,key\nid,a1\n');
  const ids: string[] = [];
  for await (const batch of readProtected({ path, column: 'key' }, { ...options, column: 'other' })) ids.push(...batch);
  expect(ids).toEqual(['a1']);
});

test.each([
  ['keep.txt', ''],
  ['keep.txt', '\n\n'],
  ['keep', '\ufeff'],
  ['keep.csv', 'id\n'],
  ['keep.csv', 'id,name\nid,name\n'],
  ['keep.jsonl', '\n'],
])('refuses a protect file without an id, which would protect nothing: %s with %j', async (name, content) => {
  const path = write(name, content);
  await expect(protectedIn(path)).rejects.toMatchObject({
    code: 'USAGE',
    message: `${path}: expected at least one id to protect, got none`,
    next: expect.stringContaining('omit --protect'),
  });
});

test('takes a header that stands again in a protect file for no id', async () => {
  expect(await protectedIn(write('keep.csv', 'id\na1\nid\na2\n'))).toEqual(['a1', 'a2']);
});

test('takes ids that begin with a dash', async () => {
  expect(brief(await collect(await openInputs([write('x.txt', '-rf\n--yes\n')], noStdin())))).toEqual(['-rf', '--yes']);
});
