import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ExpungeError, systemCode } from '../errors.ts';
import { mostlyRejected, mostlyRejectedAs } from '../guard/check-rejected.ts';
import { removeOldFiles } from '../ledger/kept-files.ts';
import type { Row } from '../model/row.ts';
import { fileWords } from '../system-words.ts';
import type { InputOptions } from './input-options.ts';
import type { InputFile } from './open-inputs.ts';
import { readProtected } from './read-protected.ts';
import { readRows } from './read-rows.ts';
import { readSpool } from './read-spool.ts';
import { type Spool, spoolRows } from './spool.ts';
import { createSpoolFolder, removeSpool, removeStaleSpools } from './spool-folder.ts';
import { writeRejects } from './write-rejects.ts';

/** A list that was read to its end, and where its rejected rows are written out, if there are any. */
export type List = { spool: Spool; rejectsFile: string | null };

/** What a list is read from, and how. */
export type Reading = {
  files: InputFile[];
  options: InputOptions;
  /** A file of ids that are never deleted. */
  protectFile: string | null;
  limit: number | null;
  /** How long files of old runs and lists are kept beside it. */
  keepMs: number;
  /** More than half of the rows may be unusable. */
  expectRejected: boolean;
  /** Told of rows as they are read; what it throws ends the reading. */
  onRows(n: number): void;
};

/** Reads and validates the whole list, does `body` with it, and removes the spool. Nothing is sent or stored before it is whole. Throws USAGE for what cannot be what somebody meant. */
export async function withList<T>(
  stateDir: string,
  open: () => Promise<Reading>,
  body: (list: List) => Promise<T>,
): Promise<T> {
  await makeStateDir(stateDir);
  const folder = await inStateDir(stateDir, () => makeSpool(stateDir));
  try {
    const reading = await open();
    const spool = await readList(folder, reading);
    await removeOldFiles(stateDir, reading.keepMs, Date.now());
    const rejectsFile = await inStateDir(stateDir, () => writeRejectsFile(spool, stateDir));
    if (!reading.expectRejected) refuseMostlyRejected(spool, rejectsFile);
    return await body({ spool, rejectsFile });
  } finally {
    await removeSpool(folder);
  }
}

/** Makes the state folder, closed to other users. Throws USAGE where that is impossible. */
export async function makeStateDir(stateDir: string): Promise<void> {
  await inStateDir(stateDir, () => mkdir(stateDir, { recursive: true, mode: 0o700 }));
}

/** Does something with files in the state folder. Throws USAGE, in words, for what the disk refuses; nothing was sent by then. */
async function inStateDir<T>(stateDir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (systemCode(error) === '') throw error;
    const words = systemCode(error) === 'EEXIST' ? 'it is a file' : fileWords(error);
    const message = `--state-dir ${stateDir}: expected a folder that can be written: ${words}; nothing was sent`;
    throw new ExpungeError('USAGE', message, { cause: error, next: 'name another folder with --state-dir' });
  }
}

async function makeSpool(stateDir: string): Promise<string> {
  await removeStaleSpools(stateDir);
  return createSpoolFolder(stateDir);
}

async function readList(folder: string, { files, options, protectFile, limit, onRows }: Reading): Promise<Spool> {
  const batches = tellRows(readRows(files, options), onRows);
  const protectedIds = protectFile === null ? null : readProtected(protectFile, options);
  return spoolRows(batches, folder, { files: files.map(({ name }) => name), protectedIds, limit });
}

function refuseMostlyRejected(spool: Spool, rejectsFile: string | null): void {
  const code = mostlyRejectedAs(spool);
  if (code === null || rejectsFile === null) return;
  const examples: string[] = [];
  for (const row of readSpool(spool)) {
    if (row.reject === code) examples.push(row.id);
    if (examples.length === 3) break;
  }
  throw mostlyRejected(spool, code, examples, rejectsFile);
}

async function* tellRows(batches: AsyncIterable<Row[]>, onRows: (n: number) => void): AsyncGenerator<Row[]> {
  for await (const rows of batches) {
    onRows(rows.length);
    yield rows;
  }
}

async function writeRejectsFile(spool: Spool, stateDir: string): Promise<string | null> {
  if (spool.rejected === 0) return null;
  const folder = join(stateDir, 'rejects');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${spool.sha256.slice(0, 12)}.csv`);
  await writeRejects(spool, path);
  return path;
}
