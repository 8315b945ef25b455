import { type FileHandle, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ExpungeError } from '../errors.ts';
import type { OutcomeRow } from '../ledger/outcome-rows.ts';
import { rehearsalMark } from '../model/rehearsal.ts';
import { csvCell, neutralised } from '../model/row.ts';
import { isChosen, type Selection } from '../model/selection.ts';
import { isStalePath, processName } from '../stale-path.ts';
import { describeFileError, systemCode } from '../system-errors.ts';

export type ReportFormat = 'csv' | 'ndjson';

/** How a report is written. `spreadsheetSafe`: ids that a spreadsheet would run as a formula are changed, and the header says so. */
export type ReportStyle = { format: ReportFormat; spreadsheetSafe: boolean };

/** A style, and whether each row is marked as one of a rehearsal. */
export type RowStyle = ReportStyle & { isRehearsal?: boolean };

/** Writes text, and resolves when there is room for more. Returns false once the reader has closed the stream. */
export type Sink = (text: string) => Promise<boolean>;

/** `only`: the rows to write; null = all. */
type ReportOptions = ReportStyle & { only: Selection | null };

/** Writes a header and the rows, and returns the number of rows. If `sink` returns false, it ends early, without an error. */
export async function writeReport(
  rows: AsyncIterable<OutcomeRow[]>,
  { only, ...style }: ReportOptions,
  sink: Sink,
): Promise<number> {
  let written = 0;
  let wanted = await sink(reportHeader(style));
  for await (const page of rows) {
    if (!wanted) break;
    const chosen = only === null ? page : page.filter((row) => isChosen(only, row));
    if (chosen.length > 0) wanted = await sink(reportText(chosen, style));
    written += chosen.length;
  }
  return written;
}

/** The header of a report; '' for NDJSON. The column of changed ids is named `id_safe`, so that it is not read back as ids. */
export function reportHeader({ format, spreadsheetSafe, isRehearsal }: RowStyle): string {
  if (format === 'ndjson') return '';
  return `${isRehearsal ? 'rehearsal,' : ''}file,line,resource,${spreadsheetSafe ? 'id_safe' : 'id'},${resultColumns.join(',')}\n`;
}

/** The rows as text. NDJSON is lossless; in a CSV, `file` and `excerpt` never begin a formula. */
export function reportText(rows: OutcomeRow[], style: RowStyle): string {
  let text = '';
  for (const row of rows) text += style.format === 'csv' ? csvLine(row, style) : ndjsonLine(row, style);
  return text;
}

function csvLine(row: OutcomeRow, { spreadsheetSafe, isRehearsal }: RowStyle): string {
  const file = csvCell(neutralised(row.file));
  const id = csvCell(spreadsheetSafe ? neutralised(row.id) : row.id);
  const mark = isRehearsal ? `${rehearsalMark},` : '';
  return `${mark}${file},${row.line},${row.resource ?? ''},${id},${resultCells(row).map(csvCell).join(',')}\n`;
}

/** The last columns of a report: the outcome of a row. */
export const resultColumns = ['outcome', 'status', 'attempts', 'settled_at', 'code', 'excerpt'] as const;

/** The cells of these columns, in the same order. The excerpt never begins a formula. */
export function resultCells({ outcome, status, attempts, settledAt, code, excerpt }: OutcomeRow): string[] {
  return [outcome, String(status ?? ''), String(attempts), settledAt, code, neutralised(excerpt)];
}

function ndjsonLine(row: OutcomeRow, { isRehearsal }: RowStyle): string {
  const { settledAt, code, excerpt, ...rest } = row;
  const mark = isRehearsal ? { rehearsal: true } : {};
  return `${JSON.stringify({ ...mark, ...rest, settled_at: settledAt, code, excerpt })}\n`;
}

/** Writes a report that replaces a file, as `ReportFile` does it, and returns what `body` returns. If `body` fails, the old file stays. */
export async function writeReportFile<T>(path: string, run: string, body: (sink: Sink) => Promise<T>): Promise<T> {
  const file = await ReportFile.open(path, run);
  try {
    const written = await body((text) => file.write(text));
    await file.commit();
    return written;
  } finally {
    await file.discard();
  }
}

/**
 * A report that replaces a file. States: open → committed | discarded. With `commit` the complete file appears under its name, readable by its owner
 * only. Before that, and after `discard`, the existing file of that name is unchanged. A pipe or a device is written directly. All methods but
 * `discard` throw INTERNAL for errors of the file system, which do not change the run.
 */
export class ReportFile {
  readonly path: string;
  readonly #run: string;
  readonly #target: string;
  readonly #written: string; // the file that gets the bytes until the commit
  readonly #handle: FileHandle;

  private constructor(path: string, run: string, target: string, written: string, handle: FileHandle) {
    this.path = path;
    this.#run = run;
    this.#target = target;
    this.#written = written;
    this.#handle = handle;
  }

  static async open(path: string, run: string): Promise<ReportFile> {
    try {
      const target = await realpath(path).catch(() => path); // a link stays a link
      const written = (await isPlain(target)) ? draftOf(target) : target;
      if (written !== target) await removeDrafts(target);
      return new ReportFile(path, run, target, written, await open(written, written === target ? 'w' : 'wx', 0o600));
    } catch (error) {
      throw notWritten(path, run, error);
    }
  }

  async write(text: string): Promise<true> {
    await this.#try(() => this.#handle.appendFile(text));
    return true;
  }

  async commit(): Promise<void> {
    await this.#try(async () => {
      if (this.#written !== this.#target) await this.#handle.sync();
      await this.#handle.close();
      if (this.#written !== this.#target) await rename(this.#written, this.#target);
    });
  }

  /** Discards the draft. Never throws, because it follows another error. Does nothing after a commit. */
  async discard(): Promise<void> {
    await this.#handle.close().catch(() => {});
    if (this.#written !== this.#target) await rm(this.#written, { force: true }).catch(() => {});
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw notWritten(this.path, this.#run, error);
    }
  }
}

/** Whether a file can replace this path: true unless the path is a pipe or a device. */
async function isPlain(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found === null || found.isFile() || found.isDirectory();
}

function draftOf(path: string): string {
  return join(dirname(path), `${draftStart(path)}${processName()}.part`);
}

function draftStart(path: string): string {
  return `.${basename(path).slice(0, 140)}.`; // short enough for file systems, even with the rest of the name
}

/** Removes the drafts that killed processes left for this path; drafts of live processes stay. Never throws. */
export async function removeDrafts(path: string): Promise<void> {
  const [folder, start] = [dirname(path), draftStart(path)];
  const drafts = (await readdir(folder).catch(() => [])).filter(
    (name) => name.startsWith(start) && name.endsWith('.part'),
  );
  for (const name of drafts) {
    const draft = join(folder, name);
    const isOver = await isStalePath(draft, name.slice(start.length, -'.part'.length));
    if (isOver) await rm(draft, { force: true }).catch(() => {});
  }
}

const reasons: Record<string, string> = {
  ENOENT: 'its folder does not exist',
  ENOTDIR: 'its folder does not exist',
  EISDIR: 'it is a folder',
};

/** The error for a report that could not be written: where, why, and that nothing is lost. USAGE for a wrong path, otherwise INTERNAL. */
export function notWritten(path: string, run: string, error: unknown): ExpungeError {
  const mistake = reasons[systemCode(error)];
  const why = mistake ?? describeFileError(error);
  const message = `the report could not be written to ${path}: ${why}; the run's outcomes are safe in Redis`;
  return new ExpungeError(mistake === undefined ? 'INTERNAL' : 'USAGE', message, {
    cause: error,
    next: (toType) => toType('report', run, '--output', 'ELSEWHERE'),
  });
}
