import { ExpungeError } from '../errors.ts';
import { count, plural } from '../format.ts';
import { checkText } from '../input/check-text.ts';
import { decompress } from '../input/decompress.ts';
import { inputError } from '../input/input-error.ts';
import { detectDelimiter, type InputOptions } from '../input/input-options.ts';
import type { InputFile } from '../input/open-inputs.ts';
import { type CsvRecord, readCsvRecords } from '../input/read-csv.ts';
import { cutId } from '../input/spool-files.ts';
import { type OutcomeRow, shownId } from '../ledger/outcome-rows.ts';
import type { Run } from '../ledger/run.ts';
import { idOutcomes } from '../model/outcome.ts';
import { csvCell, type Row } from '../model/row.ts';
import { isChosen, type Selection } from '../model/selection.ts';
import { resultCells, resultColumns, type Sink } from './report.ts';

/** The CSV files of a run, in order, and how their ids were read. */
export type JoinedFiles = { files: InputFile[]; options: InputOptions; limit: number | null };

/** A record of a file with the outcome of its row; null for a header. */
type JoinedRecord = CsvRecord & { file: number; outcome: OutcomeRow | null };

/**
 * Writes the records of the files unchanged, each followed by its outcome, and returns the number of rows. Holds one page of rows and one of
 * outcomes. Throws USAGE at the first row that differs from the run's, so call `checkJoined` first if the written text cannot be taken back.
 */
export async function writeJoined(
  joined: JoinedFiles,
  run: Run,
  pages: AsyncIterable<OutcomeRow[]>,
  only: Selection | null,
  sink: Sink,
): Promise<number> {
  let rows = 0;
  let header: CsvRecord | null = null;
  let lineEnd: string | null = null;
  for await (const records of joinRecords(joined, run, pages)) {
    let text = '';
    for (const record of records) {
      lineEnd ??= record.hasCarriageReturn ? '\r\n' : '\n';
      const { outcome, file } = record;
      if (outcome === null) {
        if (header === null) text += `${headerText(record, delimiterIn(joined, file))}${lineEnd}`;
        else if (header.text !== record.text) throw otherHeader(joined.files[file]!, joined.files[0]!);
        header ??= record;
      } else if (only === null || isChosen(only, outcome)) {
        text += `${recordText(record.text, outcome, delimiterIn(joined, file))}${lineEnd}`;
        rows += 1;
      }
    }
    if (text !== '' && !(await sink(text))) break;
  }
  return rows;
}

/** Throws USAGE if the files do not hold the rows of the run, each on its line. */
export async function checkJoined(joined: JoinedFiles, run: Run, pages: AsyncIterable<OutcomeRow[]>): Promise<void> {
  await writeJoined(joined, run, pages, null, async () => true);
}

function delimiterIn({ files, options }: JoinedFiles, file: number): string {
  return detectDelimiter(files[file]!, options.delimiter);
}

/** The header with the names of the result columns. A name that the file has already gets a prefix. */
function headerText({ cells, text }: CsvRecord, delimiter: string): string {
  const names = resultColumns.map((name) => (cells.includes(name) ? `expunge_${name}` : name));
  return [text, ...names].join(delimiter);
}

function recordText(text: string, outcome: OutcomeRow, delimiter: string): string {
  return [text, ...resultCells(outcome).map((cell) => cellText(cell, delimiter))].join(delimiter);
}

function cellText(cell: string, delimiter: string): string {
  return cell.includes(delimiter) ? `"${cell.replaceAll('"', '""')}"` : csvCell(cell);
}

/** The records of all files in order, each with its outcome. Rows and outcomes are in the same order, so no search is needed. */
async function* joinRecords(
  { files, options, limit }: JoinedFiles,
  run: Run,
  pages: AsyncIterable<OutcomeRow[]>,
): AsyncGenerator<JoinedRecord[]> {
  requireFileCount(files, run);
  const outcomes = new Cursor(pages);
  let left = limit ?? Number.POSITIVE_INFINITY;
  for (const [index, file] of files.entries()) {
    const text = checkText(file, decompress(file.name, file.open()));
    const facts = { file: index, name: file.name, format: 'csv' } as const;
    const fileOptions = { ...options, delimiter: detectDelimiter(file, options.delimiter) };
    for await (const records of readCsvRecords(facts, text, fileOptions)) {
      const joined: JoinedRecord[] = [];
      for (const record of records) {
        if (record.row !== null && left-- <= 0) break;
        const outcome = record.row === null ? null : await outcomes.next();
        if (record.row !== null) requireSameRow(file, run, options, record.row, outcome);
        joined.push({ ...record, file: index, outcome });
      }
      yield joined;
      if (left < 0) break;
    }
  }
  const missing = await outcomes.next();
  if (missing !== null) throw refused(run, `its row ${missing.file}:${missing.line} is missing`);
}

/** The rows of pages, one by one. */
class Cursor {
  readonly #pages: AsyncIterator<OutcomeRow[]>;
  #page: OutcomeRow[] = [];
  #at = 0;

  constructor(pages: AsyncIterable<OutcomeRow[]>) {
    this.#pages = pages[Symbol.asyncIterator]();
  }

  async next(): Promise<OutcomeRow | null> {
    while (this.#at === this.#page.length) {
      const { value, done } = await this.#pages.next();
      if (done) return null;
      [this.#page, this.#at] = [value, 0];
    }
    return this.#page[this.#at++]!;
  }
}

function requireFileCount(files: readonly InputFile[], run: Run): void {
  if (files.length === run.files.length) return;
  const expected = run.files.length === 1 ? run.files[0] : `${count(run.files.length)} files: ${run.files.join(', ')}`;
  throw new ExpungeError(
    'USAGE',
    `run ${run.id} was made of ${expected}; --join got ${plural(files.length, 'files')}`,
    {
      next: 'name all files of the run, in its order',
    },
  );
}

/** Throws USAGE unless this outcome belongs to this row of the file. */
function requireSameRow(
  file: InputFile,
  run: Run,
  { resource, resourceColumn }: InputOptions,
  row: Row,
  outcome: OutcomeRow | null,
): void {
  const at = `${file.name}:${row.line}`;
  if (outcome === null || outcome.file !== run.files[row.file]) throw refused(run, `it has no row for ${at}`);
  if (outcome.line !== row.line)
    throw refused(run, `its next row is in line ${outcome.line}, the next row of the file is ${at}`);
  const isOtherId = outcome.id !== idIn(row, outcome);
  const isOtherKind = (resource !== null || resourceColumn !== null) && row.resource !== outcome.resource;
  if (isOtherId) throw refused(run, `${at} holds ${JSON.stringify(row.id)}, not ${JSON.stringify(outcome.id)}`);
  if (isOtherKind) throw refused(run, `${at} is of ${row.resource ?? 'no resource'}, not of ${outcome.resource}`);
}

/** The id of a row in the form of a report with this outcome. */
function idIn({ id }: Row, { outcome, code }: OutcomeRow): string {
  const isSent = outcome === 'pending' || idOutcomes.includes(outcome);
  return isSent ? id : shownId({ id: cutId(id), code: code as Parameters<typeof shownId>[0]['code'] });
}

function refused({ id }: Run, why: string): ExpungeError {
  return new ExpungeError('USAGE', `these are not the rows of run ${id}: ${why}`, {
    next: 'give the files as they were then, with the same --column, --delimiter and --limit; the report needs no file: omit --join',
  });
}

function otherHeader(file: InputFile, first: InputFile): Error {
  const message = `its header differs from the header of ${first.name}, so they cannot form one table`;
  return inputError(file.name, 1, message, 'omit --join: the report itself has the rows of all files');
}
