import { constants, createReadStream, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { stdinName } from '../model/row.ts';
import { explainFileError } from '../system-errors.ts';
import { inputError } from './input-error.ts';

/** One source of ids. */
export type InputFile = {
  name: string; // as shown: the path, or (stdin)
  isStdin: boolean;
  isPipe: boolean; // stdin or a named pipe: its writer can die unnoticed in the middle of a line
  open(): AsyncIterable<Buffer>; // the bytes as they are; fails if the file changes before its end
};

/**
 * The named files, `-` being stdin. All are looked at before the first is read, so that a missing one costs no time.
 * Throws USAGE for one that is missing, unreadable, a folder, or stdin named twice.
 */
export async function openInputs(paths: string[], stdin: AsyncIterable<Buffer>): Promise<InputFile[]> {
  if (paths.filter((path) => path === '-').length > 1) throw inputError('-', null, 'stdin can be read only once');
  return Promise.all(paths.map((path) => (path === '-' ? fromStdin(stdin) : fromFile(path))));
}

function fromStdin(stdin: AsyncIterable<Buffer>): InputFile {
  return { name: stdinName, isStdin: true, isPipe: true, open: () => stdin };
}

async function fromFile(path: string): Promise<InputFile> {
  const before = await statReadable(path);
  if (before.isDirectory()) throw inputError(path, null, 'expected a file, got a folder', filesIn(path));
  return { name: path, isStdin: false, isPipe: !before.isFile(), open: () => readUnchanged(path, before) };
}

/** For a shell, which names them one by one. */
function filesIn(path: string): string {
  return `name the files in it: ${path.replace(/\/+$/, '')}/*.csv`;
}

async function statReadable(path: string): Promise<Stats> {
  try {
    await access(path, constants.R_OK);
    return await stat(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function* readUnchanged(path: string, before: Stats): AsyncGenerator<Buffer> {
  const stream = createReadStream(path, { highWaterMark: 64 * 1024 });
  try {
    yield* stream;
  } catch (error) {
    throw unreadable(path, error);
  }
  if (before.isFile()) refuseChange(path, before, await statReadable(path));
}

/** What was read would be neither the old file nor the new one. */
function refuseChange(path: string, before: Stats, after: Stats): void {
  const facts = ['dev', 'ino', 'size', 'mtimeMs'] as const;
  if (facts.every((fact) => before[fact] === after[fact])) return;
  throw inputError(
    path,
    null,
    'the file changed while it was read',
    'run again when no program writes to it, or use a copy',
  );
}

function unreadable(path: string, error: unknown): Error {
  const { words, next } = explainFileError(error);
  return inputError(path, null, words, next);
}
