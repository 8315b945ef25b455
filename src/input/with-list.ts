import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import { csvCell, neutralised, type RejectCode, type Row, rejectionMend, rejectionReason } from '../model/row.ts';
import { visible } from '../model/visible.ts';
import { describeFileError, systemCode } from '../system-errors.ts';
import { readSpool } from './chunk-ids.ts';
import { adviceToCut, adviceToTrim } from './convert-advice.ts';
import { inputError, shown } from './input-error.ts';
import { formatByName, type InputOptions } from './input-options.ts';
import type { InputFile } from './open-inputs.ts';
import { type ProtectFile, readProtected } from './read-protected.ts';
import { readRows } from './read-rows.ts';
import { createSpoolFolder, removeSpool, removeStaleSpools, type Spool, spoolRows } from './spool.ts';

/**
 * A list that was read completely, and the file of its rejected rows, if there are any. `openEnd`: the id in the last line of a single file, if that
 * line has no newline.
 */
export type List = { spool: Spool; rejectsFile: string | null; openEnd: string | null };

/** The files of a list, and how they are read. */
type ReadOptions = {
  files: InputFile[];
  options: InputOptions;
  /** A file of ids that are never deleted. */
  protectFile: ProtectFile | null;
  limit: number | null;
  /** Whether more than half of the rows may be unusable. */
  expectRejected: boolean;
  /** The folder for the rejected rows; by default a folder in the state folder. */
  rejectsFolder?: string | undefined;
  /** Called with the number of rows read. If it throws, reading ends. */
  onRows(n: number): void;
};

/**
 * Reads and validates the whole list, calls `body` with it, and removes the spool. Nothing is sent or stored before that. Throws USAGE for input that
 * is not reliable, and for a list in which most rows are rejected.
 */
export async function withList<T>(
  stateDir: string,
  open: () => Promise<ReadOptions>,
  body: (list: List) => Promise<T>,
): Promise<T> {
  return withSpoolFolder(stateDir, async (folder) => {
    const reading = await open();
    const { spool, openEnd } = await readList(folder, reading);
    const { rejectsFolder = join(stateDir, 'rejects') } = reading;
    const rejectsFile = await inStateDir(stateDir, () => writeRejectsFile(spool, rejectsFolder));
    if (!reading.expectRejected) {
      refuseMostlyRejected(spool, rejectsFile);
      refuseForeignText(spool);
    }
    return body({ spool, rejectsFile, openEnd });
  });
}

/** Calls `body` with an empty folder for a spool, and removes it. Throws USAGE if the state folder cannot be written. */
export async function withSpoolFolder<T>(stateDir: string, body: (folder: string) => Promise<T>): Promise<T> {
  await makeStateDir(stateDir);
  const folder = await inStateDir(stateDir, () => makeSpool(stateDir));
  try {
    return await body(folder);
  } finally {
    await removeSpool(folder);
  }
}

/** Creates the state folder, closed to other users. Throws USAGE if that fails. Repeating it is harmless. */
export async function makeStateDir(stateDir: string): Promise<void> {
  await inStateDir(stateDir, () => mkdir(stateDir, { recursive: true, mode: 0o700 }));
}

/** Works with files in the state folder. Throws USAGE for errors of the file system. */
async function inStateDir<T>(stateDir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (systemCode(error) === '') throw error;
    const words = systemCode(error) === 'EEXIST' ? 'it is a file' : describeFileError(error);
    const message = `--state-dir ${stateDir}: expected a folder that can be written: ${words}; nothing was sent`;
    throw new ExpungeError('USAGE', message, { cause: error, next: 'name another folder with --state-dir' });
  }
}

async function makeSpool(stateDir: string): Promise<string> {
  await removeStaleSpools(stateDir);
  return createSpoolFolder(stateDir);
}

type Reading = Pick<List, 'spool' | 'openEnd'>;

async function readList(folder: string, { files, options, protectFile, limit, onRows }: ReadOptions): Promise<Reading> {
  let [isOpen, last] = [false, null as Row | null];
  const onOpenEnd = () => {
    isOpen = true;
  };
  const noted = files.map((file) => Object.assign({ onOpenEnd }, file));
  const batches = countRows(readRows(noted, options), (rows) => {
    last = rows.at(-1) ?? last;
    onRows(rows.length);
  });
  const protectedIds = protectFile === null ? null : readProtected(protectFile, options);
  const spool = await spoolRows(batches, folder, { files: files.map(({ name }) => name), protectedIds, limit });
  return { spool, openEnd: isOpen && files.length === 1 ? (last?.id ?? null) : null };
}

function refuseMostlyRejected(spool: Spool, rejectsFile: string | null): void {
  const code = mostlyRejectedAs(spool);
  if (code === null || rejectsFile === null) return;
  throw mostlyRejected(spool, code, () => readRejected(spool, [code]), rejectsFile);
}

/** The maximum number of such rows: a heading or a count may slip into a list of plain lines, but with more such text it is something else. */
const maxForeignRows = 2;
const foreignCodes: readonly string[] = ['inner_white_space', 'outer_punctuation'] satisfies RejectCode[];

/** Throws USAGE for a list in which more than two lines are text around ids instead of ids. */
function refuseForeignText(spool: Spool): void {
  const foreign = foreignCodes.reduce((sum, code) => sum + (spool.rejectedByCode[code] ?? 0), 0);
  if (foreign <= maxForeignRows) return;
  for (const { file, line, id, reject } of readRejected(spool, foreignCodes)) {
    const message = `${shown(id)} is not an id, and neither are ${count(foreign - 1)} other rows: ${rejectionReason(reject)}; nothing was sent`;
    const next = `${rejectionMend(reject, idsOf(readRejected(spool, [reject])))}\nto continue with the other rows: --expect-rejected`;
    throw inputError(spool.files[file]!, line, message, next);
  }
}

type Rejected = Pick<Row, 'file' | 'line' | 'id'> & { reject: RejectCode };

/** The rows that were rejected with one of these codes, in input order. */
function* readRejected(spool: Spool, codes: readonly string[]): Generator<Rejected> {
  for (const { file, line, id, reject } of readSpool(spool)) {
    if (reject !== null && codes.includes(reject)) yield { file, line, id, reject };
  }
}

function firstOf<T>(values: Iterable<T>, max: number): T[] {
  const first: T[] = [];
  for (const value of values) if (first.push(value) === max) break;
  return first;
}

function* idsOf(rows: Iterable<Pick<Row, 'id'>>): Generator<string> {
  for (const { id } of rows) yield id;
}

async function* countRows(batches: AsyncIterable<Row[]>, onRows: (rows: Row[]) => void): AsyncGenerator<Row[]> {
  for await (const rows of batches) {
    onRows(rows);
    yield rows;
  }
}

async function writeRejectsFile(spool: Spool, folder: string): Promise<string | null> {
  if (spool.rejected === 0) return null;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${spool.sha256.slice(0, 12)}.csv`);
  await writeRejects(spool, path);
  return path;
}

/** The number of bad rows below which a list is accepted. */
const minRows = 10;

type Facts = Pick<Spool, 'files' | 'rows' | 'rejectedByCode'>;

/** The code for which more than half of a list was rejected, or null. */
export function mostlyRejectedAs({ rows, rejectedByCode }: Pick<Facts, 'rows' | 'rejectedByCode'>): RejectCode | null {
  const found = Object.entries(rejectedByCode).find(([, bad]) => bad >= minRows && 2 * bad > rows);
  return found === undefined ? null : (found[0] as RejectCode);
}

/**
 * The error for such a list: most likely the wrong column or file was read, and then its other rows are also wrong. `rejected` are its bad rows.
 */
export function mostlyRejected(
  list: Facts,
  code: RejectCode,
  rejected: () => Iterable<Pick<Row, 'file' | 'id'>>,
  rejectsFile: string,
): ExpungeError {
  const examples = firstOf(rejected(), 3);
  const bad = `${count(list.rejectedByCode[code]!)} of ${count(list.rows)} rows are rejected as ${code}`;
  const like = examples.map(({ id }) => shown(id)).join(', ');
  const name = list.files[examples[0]!.file]!;
  const mends = [...textMends(name, code, rejected), rejectionMend(code, idsOf(rejected()))];
  const next = [`check the file and --column; all rejected rows are in ${rejectsFile}`, ...mends];
  return new ExpungeError('USAGE', `${bad}, like ${like}; nothing was sent`, {
    next: [...next, 'to continue with the other rows: --expect-rejected'].filter(Boolean).join('\n'),
  });
}

/** Commands that make ids of the text in the rejected rows. */
function textMends(name: string, code: RejectCode, rejected: () => Iterable<Pick<Row, 'id'>>): string[] {
  if (code === 'outer_white_space') return [adviceToTrim(name)];
  const isPlain = (formatByName(name) ?? 'lines') === 'lines';
  if (code !== 'unsafe_character' || !isPlain || !areAddresses(rejected())) return [];
  return [`if these are addresses, whose last part is the id:\n${adviceToCut(name)}`];
}

/** Whether all are paths or URLs that differ in their last part. */
function areAddresses(rows: Iterable<Pick<Row, 'id'>>): boolean {
  const paths = new Set<string>();
  for (const { id } of rows) {
    const end = id.lastIndexOf('/');
    if (end < 1 || end === id.length - 1 || paths.add(id.slice(0, end)).size > maxPaths) return false;
  }
  return true;
}

const maxPaths = 3;

/**
 * Writes all rejected rows to a CSV for people. Its ids are made safe for spreadsheets, so their column has another name, which `--column id` does
 * not accept. Replaces the file.
 */
export async function writeRejects(spool: Spool, path: string): Promise<void> {
  await writeFile(path, rejectLines(spool), { mode: 0o600 });
}

function* rejectLines(spool: Spool): Generator<string> {
  let text = 'file,line,id_safe,code,reason\n';
  for (const { file, line, id, reject } of readSpool(spool)) {
    if (reject === null) continue;
    const cells = [
      neutralised(visible(spool.files[file]!)),
      line,
      neutralised(visible(id)),
      reject,
      rejectionReason(reject),
    ];
    text += `${cells.map((cell) => csvCell(String(cell))).join(',')}\n`;
    if (text.length < 64 * 1024) continue;
    yield text;
    text = '';
  }
  yield text;
}
