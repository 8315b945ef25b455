import { type FileHandle, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ExpungeError, systemCode } from '../errors.ts';
import { csvCell, neutralised } from '../model/row.ts';
import { isStalePath, processName } from '../stale-path.ts';
import { describeFileError } from '../system-errors.ts';
import type { OutcomeRow } from './outcome-rows.ts';

/** Takes text, when it has room for it. Says false once nobody reads it any more. */
export type Sink = (text: string) => Promise<boolean>;

/** `only` leaves out rows with other outcomes. */
export type ReportOptions = ReportStyle & { only?: readonly OutcomeRow['outcome'][] };

/** Writes the rows as they come and returns how many. Ends early, without an error, when nobody reads them any more. */
export async function writeReport(
  rows: AsyncIterable<OutcomeRow[]>,
  options: ReportOptions,
  sink: Sink,
): Promise<number> {
  let written = 0;
  let wanted = await sink(reportHeader(options));
  for await (const page of rows) {
    if (!wanted) break;
    const chosen = options.only ? page.filter((row) => options.only!.includes(row.outcome)) : page;
    wanted = await sink(reportText(chosen, options));
    written += chosen.length;
  }
  return written;
}

/**
 * open → write … → commit | discard. The file appears under its name, complete and for its owner only, with `commit`; until
 * then and after `discard` whatever had the name is as it was. A pipe or a device is written to as it is. All throw INTERNAL,
 * in words, for what the disk refuses; the run is not touched by that.
 */
export class ReportFile {
  readonly path: string;
  readonly #run: string;
  readonly #target: string;
  readonly #written: string; // where the bytes go until the commit
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

  /** Never throws, as it follows another error. After a commit it does nothing. */
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

/** Whether a file may take this name: true unless a pipe or a device has it. */
async function isPlain(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found === null || found.isFile() || found.isDirectory();
}

function draftOf(path: string): string {
  return join(dirname(path), `${draftStart(path)}${processName()}.part`);
}

function draftStart(path: string): string {
  return `.${basename(path).slice(0, 140)}.`; // with all that follows no longer than file systems take
}

/** Removes what processes that were killed had begun to write for this path. Safe while others write; never throws. */
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

/** What a refused report says: where, why, and that nothing is lost. */
export function notWritten(path: string, run: string, error: unknown): ExpungeError {
  const why = reasons[systemCode(error)] ?? describeFileError(error);
  const message = `the report could not be written to ${path}: ${why}; the run's outcomes are safe in Redis`;
  return new ExpungeError('INTERNAL', message, { cause: error, next: `expunge report ${run} --output ELSEWHERE` });
}

export type ReportFormat = 'csv' | 'ndjson';

/** How a report is written. `spreadsheetSafe` changes ids that a spreadsheet would run, and says so in the header. */
export type ReportStyle = { format: ReportFormat; spreadsheetSafe: boolean };

const columns = ['file', 'line', 'resource', 'id', 'outcome', 'status', 'attempts', 'settled_at', 'code', 'excerpt'];

/** What stands before the rows. The column of changed ids has a name that `--column id` refuses. */
export function reportHeader({ format, spreadsheetSafe }: ReportStyle): string {
  if (format === 'ndjson') return '';
  return `${columns.map((column) => (column === 'id' && spreadsheetSafe ? 'id_safe' : column)).join(',')}\n`;
}

/** The rows as text. NDJSON is lossless; in a CSV `file` and `excerpt` never begin a formula. */
export function reportText(rows: OutcomeRow[], style: ReportStyle): string {
  let text = '';
  for (const row of rows) text += style.format === 'csv' ? csvLine(row, style.spreadsheetSafe) : ndjsonLine(row);
  return text;
}

function csvLine(row: OutcomeRow, spreadsheetSafe: boolean): string {
  const file = csvCell(neutralised(row.file));
  const id = csvCell(spreadsheetSafe ? neutralised(row.id) : row.id);
  const resultColumns = `${row.outcome},${row.status ?? ''},${row.attempts},${row.settledAt},${row.code}`;
  return `${file},${row.line},${row.resource ?? ''},${id},${resultColumns},${csvCell(neutralised(row.excerpt))}\n`;
}

function ndjsonLine(row: OutcomeRow): string {
  const { settledAt, code, excerpt, ...rest } = row;
  return `${JSON.stringify({ ...rest, settled_at: settledAt, code, excerpt })}\n`;
}
