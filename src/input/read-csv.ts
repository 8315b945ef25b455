import { type CsvError, type Info, Parser } from 'csv-parse';
import { resources } from '../model/resource.ts';
import type { Row } from '../model/row.ts';
import { suggest } from '../model/suggest.ts';
import { peek, resume } from './decompress.ts';
import { typedDelimiter } from './header.ts';
import { frameOf } from './id-shapes.ts';
import { inputError, shown } from './input-error.ts';
import {
  columnSetting,
  type FileFacts,
  type InputOptions,
  idColumn,
  type RowMaker,
  rowMaker,
} from './input-options.ts';
import { ambiguous } from './json-record.ts';
import { kindColumns } from './kind-column.ts';
import { type PlainEnd, type TakeRecord, takePlain } from './plain-csv.ts';
import { maxRecordSize } from './read-lines.ts';
import { findRival, isNamedLike } from './rivals.ts';

/** Reads the rows of a CSV. Throws USAGE, naming the line, for text that is not a table: ragged rows, stray or unclosed quotes. */
export async function* readCsv(
  facts: FileFacts,
  chunks: AsyncIterable<Buffer>,
  options: InputOptions,
): AsyncGenerator<Row[]> {
  let rows: Row[] = [];
  const { read, end } = recordReader(facts, options);
  const take = (cells: string[], line: number) => {
    if (isBlank(cells)) return;
    const row = read(cells, line);
    if (row !== null) rows.push(row);
  };
  for await (const _ of parse(facts.name, chunks, options, take)) {
    yield rows;
    rows = [];
  }
  end();
}

/** A record of a CSV with its text as in the file, without the line end. `row` is null for the header. */
export type CsvRecord = { cells: string[]; text: string; row: Row | null; hasCarriageReturn: boolean };

/** Reads the same rows with the text of each record. */
export async function* readCsvRecords(
  facts: FileFacts,
  chunks: AsyncIterable<Buffer>,
  options: InputOptions,
): AsyncGenerator<CsvRecord[]> {
  let records: CsvRecord[] = [];
  const { read } = recordReader(facts, options);
  const take = (cells: string[], line: number, raw: string) => {
    if (isBlank(cells)) return;
    records.push({ cells, text: withoutLineEnds(raw), row: read(cells, line), hasCarriageReturn: raw.endsWith('\r') });
  };
  for await (const _ of parse(facts.name, chunks, options, take, true)) {
    yield records;
    records = [];
  }
}

/** Whether all of several cells are empty, as in the rows that a spreadsheet leaves below a table. Such a row is a blank line. */
function isBlank(cells: readonly string[]): boolean {
  return cells[0] === '' && cells.length > 1 && cells.every((cell) => cell === '');
}

/** A record without the line ends around it. Line ends in its cells are within quotes. */
function withoutLineEnds(raw: string): string {
  let [start, end] = [0, raw.length];
  while (start < end && '\r\n'.includes(raw[start]!)) start++;
  while (end > start && '\r\n'.includes(raw[end - 1]!)) end--;
  return raw.slice(start, end);
}

/** Calls `take` with each record; yields after each chunk of the text. `hasRaw`: also passes its text, which costs time. */
async function* parse(
  name: string,
  chunks: AsyncIterable<Buffer>,
  { delimiter, comments }: Pick<InputOptions, 'delimiter' | 'comments'>,
  take: TakeRecord,
  hasRaw = false,
): AsyncGenerator<void> {
  const { head, all } = await peek(chunks, 1024);
  try {
    const { line, bytes } = hasRaw ? textBegin : yield* takePlain(all, { delimiter, comments }, take);
    yield* parseFrom(line, resume(bytes, all), { name, delimiter, comments, head, hasRaw }, take);
  } finally {
    await all.return(null); // closes the file, even if a record is refused
  }
}

const textBegin: PlainEnd = { line: 1, bytes: Buffer.alloc(0) };

type Parsing = Pick<InputOptions, 'delimiter' | 'comments'> & { name: string; head: Buffer; hasRaw: boolean };

/** The same with the parser, for the part that begins with this line. */
async function* parseFrom(
  line: number,
  chunks: AsyncIterable<Buffer>,
  { name, delimiter, comments, head, hasRaw }: Parsing,
  take: TakeRecord,
): AsyncGenerator<void> {
  const lines = new CsvLines(line);
  const onRecord = (cells: string[], raw: string) => take(cells, lines.advance(cells, parser.info), raw);
  const parser = openParser({ delimiter, comments, hasRaw }, onRecord);
  for await (const step of feed(parser, chunks)) {
    yield;
    if (step) throw explain(name, lines.next(parser.info), step, delimiterHint(head, delimiter));
  }
}

/**
 * `read` turns each record into a row; the first record is the header, unless there is none, and gives null. `end`: call it after the last record.
 */
function recordReader(facts: FileFacts, options: InputOptions) {
  const { name } = facts;
  let columns: Columns | null = null;
  let make: RowMaker = rowMaker(facts, options);
  let header: Header | null = null; // until its first row
  const read = (cells: string[], line: number): Row | null => {
    if (columns === null) {
      columns = options.noHeader
        ? { id: 0, resource: -1, resourceName: undefined, cells: cells.length }
        : findColumns(name, line, cells, options);
      if (!options.noHeader) {
        make = rowMaker(facts, options, cells);
        header = { line, name: cells[columns.id]! };
        return null;
      }
    }
    if (cells.length !== columns.cells) throw ragged(name, line, columns.cells, cells.length);
    if (header !== null) refuseIdAsHeader(name, header, cells[columns.id]!, options);
    header = null;
    return make.row(line, cells[columns.id]!, cells[columns.resource], cells, columns.resourceName);
  };
  return { read, end: () => make.end() };
}

type Header = { line: number; name: string };

/** Throws USAGE if the header of the ids looks like the first of them: then it is an id, and would not be sent. */
function refuseIdAsHeader(name: string, { line, name: column }: Header, first: string, options: InputOptions): void {
  if (options.allowColumnNames || !/\d/.test(column) || frameOf(column.trim()) !== frameOf(first.trim())) return;
  const message = `the header ${shown(column)} looks like an id, as ${shown(first)} below it; nothing was sent`;
  const next = 'if the first line holds an id, put the ids first and add --no-header; if not: --allow-column-names';
  throw inputError(name, line, message, next);
}

function openParser(
  { delimiter, comments, hasRaw }: Pick<Parsing, 'delimiter' | 'comments' | 'hasRaw'>,
  onRecord: (cells: string[], raw: string) => void,
): Parser {
  return new Parser({
    delimiter,
    comment: comments,
    comment_no_infix: true,
    // Listed, because detection by the first line would make other line ends part of an id.
    record_delimiter: ['\r\n', '\n', '\r'],
    skip_empty_lines: true,
    relax_column_count: true, // we count the columns ourselves, to name the line
    max_record_size: maxRecordSize,
    raw: hasRaw,
    on_record: (record: string[] | { record: string[]; raw: string }) => {
      if (Array.isArray(record)) onRecord(record, '');
      else onRecord(record.record, record.raw);
      return null; // nothing goes through the stream, because pushing a row costs more than parsing it
    },
  });
}

/** Writes chunks to the parser. Yields after each, and last the error that ended parsing, so that earlier rows are read first. */
async function* feed(parser: Parser, chunks: AsyncIterable<Buffer>): AsyncGenerator<Error | null> {
  let failure: Error | null = null;
  parser.on('error', (error) => {
    failure = error;
  });
  parser.resume(); // it yields nothing, but the stream must reach its end
  for await (const chunk of chunks) {
    await new Promise<void>((done) => parser.write(chunk, () => done()));
    yield failure;
  }
  await new Promise<void>((done) => parser.end(() => done()));
  yield failure;
}

const messages: Record<string, string> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote opens in the row that begins here and is never closed',
  CSV_MAX_RECORD_SIZE: 'the row that begins here is longer than 1 MiB: is a quote not closed?',
  CSV_INVALID_CLOSING_QUOTE: 'a quote in the row that begins here ends before its cell does',
  INVALID_OPENING_QUOTE: 'a quote in the row that begins here is inside a cell that does not begin with one',
};

function explain(name: string, line: number, error: Error, hint: string | null): Error {
  const found = messages[(error as CsvError).code];
  if (!found) return error;
  return inputError(name, line, found, hint ?? 'a cell with quotes must be quoted, and each quote in it doubled');
}

/** The advice if the first line seems to have another delimiter: then quotes are in the middle of cells. */
function delimiterHint(head: Buffer, delimiter: string): string | null {
  const [firstLine = ''] = head.toString().split(/[\r\n]/, 1);
  const unquoted = firstLine.replace(/"(?:[^"]|"")*"/g, '');
  const other = unquoted.includes(delimiter) ? undefined : delimiters.find((character) => unquoted.includes(character));
  if (other === undefined) return null;
  const typed = typedDelimiter(other);
  return `the first line looks as if ${typed} separated the columns: try --delimiter ${typed}`;
}

function ragged(name: string, line: number, expected: number, got: number): Error {
  return inputError(name, line, `expected ${expected} ${expected === 1 ? 'cell' : 'cells'}, got ${got}`, raggedNext);
}

const raggedNext =
  "a cell that holds the delimiter must be quoted; if something else separates the columns, name it, as in --delimiter ';'";

/** The indexes of the columns to read, and the number of cells in each row. */
type Columns = { id: number; resource: number; resourceName: string | undefined; cells: number };

/**
 * Finds the columns in a header, whose cells may have white space around them. Throws USAGE for a column that is missing, for repeated names, and if
 * two columns could hold the ids.
 */
function findColumns(name: string, line: number, cells: string[], options: InputOptions): Columns {
  const header = cells.map((cell) => cell.trim());
  const twice = header.find((column, index) => header.indexOf(column) !== index);
  if (twice !== undefined) throw inputError(name, line, `two columns are named ${shown(twice)}`, 'rename one of them');
  const find = (column: string) => {
    const exact = cells.indexOf(column);
    const index = exact === -1 ? header.indexOf(column) : exact;
    if (index === -1) throw missing(name, line, header, column, options);
    return index;
  };
  const { resource, resourceColumn } = options;
  const id = find(idColumn(options));
  const rival = options.column === null ? findRival(header, resource) : undefined;
  if (rival !== undefined) throw ambiguous(name, line, rival, options);
  const resourceName = resourceColumn ?? kindColumns.find((known) => header.includes(known) && known !== header[id]);
  const kind = resourceName === undefined ? -1 : find(resourceName);
  return { id, resource: kind, resourceName, cells: cells.length };
}

function missing(name: string, line: number, header: string[], column: string, options: InputOptions): Error {
  const columns = header.slice(0, 20).map(shown).join(', ');
  const message = `no column ${shown(column)} in the header, which has: ${columns}.${suggest(column, header)}`;
  return inputError(name, line, message, columnAdvice(header, column, options));
}

function columnAdvice(header: string[], column: string, options: InputOptions): string {
  const delimiter = fittingDelimiter(header, column);
  if (delimiter) return `try --delimiter ${delimiter}`;
  if (preamble.test(header[0]!)) {
    return 'the first line is not a header: remove it, for example with: tail -n +2 FILE';
  }
  if (column === 'id' && header.includes('id_safe')) {
    return 'id_safe holds ids changed for spreadsheets: use a report made without --spreadsheet-safe';
  }
  const likely = likelyColumn(header, options.resource);
  const named = `name the column of the ids, as in ${columnSetting(options, likely ?? 'NAME')}`;
  if (options.reads !== 'list') return named;
  const noHeader = 'add --no-header if the first line holds an id already';
  return likely === undefined && header.some((name) => /\d/.test(name)) ? noHeader : `${named}; or ${noHeader}`;
}

/** The column that most likely holds the ids; none that holds the ids of another resource. */
function likelyColumn(header: string[], resource: string | null): string | undefined {
  const others = resource === null ? [] : resources.filter((other) => other !== resource);
  const names = header.filter((name) => !others.some((other) => isNamedLike(name, other)));
  const bare = names.find((name) => /^\W*_?(?:uu|gu)?id$/i.test(name));
  return findRival(names, resource) ?? bare ?? names.find((name) => /id$/i.test(name) && !/\d/.test(name));
}

/** Lines that programs write above a header: the type of an object (PowerShell), the delimiter (Excel), a remark or a warning. */
const preamble = /^(?:#|sep=|--|\w+: \[Warning\]|Waiting on |SET$|BEGIN$)/i;

function fittingDelimiter(header: string[], column: string): string | undefined {
  if (header.length > 1) return undefined;
  const found = delimiters.find((character) => header[0]?.split(character).includes(column));
  return found === undefined ? undefined : typedDelimiter(found);
}

const delimiters = [';', '\t', ',', '|'];

/**
 * Counts the lines of a CSV. The parser's own count takes a CRLF inside quotes for two lines, and gives the last line of a record, while messages
 * name the first.
 */
class CsvLines {
  #end: number; // last line of the last record
  #blank = 0; // number of blank lines and comments up to that line
  #parserLines = 0; // the parser's count up to that line

  /** `first`: the number of the line at which the parser begins. */
  constructor(first: number) {
    this.#end = first - 1;
  }

  /** Returns the line on which this record begins, which the parser has just finished. */
  advance(cells: string[], info: Info): number {
    const begin = this.next(info);
    const counted = info.lines - this.#parserLines - (blankLines(info) - this.#blank);
    this.#end = begin + (counted > 1 ? newlinesIn(cells) : 0);
    this.#blank = blankLines(info);
    this.#parserLines = info.lines;
    return begin;
  }

  /** Returns the line on which the record begins that the parser has not finished. */
  next(info: Info): number {
    return this.#end + (blankLines(info) - this.#blank) + 1;
  }
}

const blankLines = (info: Info): number => info.empty_lines + info.comment_lines;

function newlinesIn(cells: string[]): number {
  return cells.reduce((sum, cell) => sum + (cell.match(/\r\n|\n|\r/g)?.length ?? 0), 0);
}
