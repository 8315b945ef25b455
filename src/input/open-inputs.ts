import { constants, createReadStream, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { stdinName } from '../model/row.ts';
import { quotePath } from '../model/shell-word.ts';
import { explainFileError, isFileError } from '../system-errors.ts';
import { decompress, type Size } from './decompress.ts';
import { inputError } from './input-error.ts';

/** One source of ids. */
export type InputFile = {
  name: string; // as shown: the path, or (stdin)
  isStdin: boolean;
  isPipe: boolean; // stdin or a named pipe, whose writer can die unnoticed within a line
  size?: Size; // for an uploaded list: the size to which it may unpack
  isUnattended?: boolean; // no person sees its last id in a plan before it is deleted, or relies on it
  /** Called after the last line if it has no newline. */
  onOpenEnd?(): void;
  open(): AsyncIterable<Buffer>; // the raw bytes; throws USAGE if the file changes while it is read
};

/**
 * Opens the named files; `-` is stdin. All are checked before the first is read, so that a missing file fails at once. Throws USAGE for a file that
 * is missing, unreadable, a folder, or of a format that is not a list, and if stdin is named twice.
 */
export async function openInputs(paths: string[], stdin: AsyncIterable<Buffer> = nothing()): Promise<InputFile[]> {
  if (paths.filter((path) => path === '-').length > 1)
    throw inputError('-', null, 'stdin can be read only once', 'name - once');
  return Promise.all(paths.map((path) => (path === '-' ? fromStdin(stdin) : fromFile(path))));
}

async function* nothing(): AsyncGenerator<Buffer> {}

function fromStdin(stdin: AsyncIterable<Buffer>): InputFile {
  return { name: stdinName, isStdin: true, isPipe: true, open: () => stdin };
}

async function fromFile(path: string): Promise<InputFile> {
  const before = await statReadable(path);
  if (before.isDirectory()) throw inputError(path, null, 'expected a file, got a folder', filesIn(path));
  if (before.isFile()) await checkBeginning(path);
  return { name: path, isStdin: false, isPipe: !before.isFile(), open: () => readUnchanged(path, before) };
}

/** The advice for a folder. A shell expands the pattern to the names of the files. */
function filesIn(path: string): string {
  return `name the files in it: ${quotePath(path.replace(/\/+$/, ''))}/*.csv`;
}

async function statReadable(path: string): Promise<Stats> {
  try {
    await access(path, constants.R_OK);
    return await stat(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** Checks the first bytes, so that a file that is not a list at all is reported as such before any message about its name or rows. */
async function checkBeginning(path: string): Promise<void> {
  const stream = createReadStream(path, { highWaterMark: 64 * 1024 });
  try {
    for await (const _ of decompress(path, stream)) break;
  } catch (error) {
    throw isFileError(error) ? unreadable(path, error) : error;
  } finally {
    stream.destroy();
  }
}

async function* readUnchanged(path: string, before: Stats): AsyncGenerator<Buffer> {
  const stream = createReadStream(path, { highWaterMark: 64 * 1024 });
  try {
    yield* stream;
  } catch (error) {
    throw unreadable(path, error);
  }
  if (before.isFile()) refuseChangedFile(path, before, await statReadable(path));
}

/** Throws USAGE for a changed file: its content would be neither the old nor the new one. */
function refuseChangedFile(path: string, before: Stats, after: Stats): void {
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
