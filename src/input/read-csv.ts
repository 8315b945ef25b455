import { type CsvError, type Info, Parser } from 'csv-parse';
import type { Row } from '../model/row.ts';
import { suggest } from '../model/suggest.ts';
import { peek } from './decompress.ts';
import { inputError, shown } from './input-error.ts';
import type { InputOptions, RowMaker } from './input-options.ts';
import { maxRecordSize } from './read-lines.ts';
import { refuseHeader } from './refuse-header.ts';

/** The rows of a CSV. Throws USAGE, naming the line, for text that is no table: ragged rows, stray or unclosed quotes. */
export async function* readCsv(
  name: string,
  chunks: AsyncIterable<Buffer>,
  options: InputOptions,
  make: RowMaker,
): AsyncGenerator<Row[]> {
  let rows: Row[] = [];
  const take = recordReader(name, options, make, (row) => rows.push(row));
  const lines = new CsvLines();
  const { head, all } = await peek(chunks, 1024);
  const parser = openParser(options.delimiter, (cells) => take(cells, lines.advance(cells, parser.info)));
  for await (const step of feed(parser, all)) {
    yield rows;
    rows = [];
    if (step) throw explain(name, lines.next(parser.info), step, delimiterHint(head, options.delimiter));
  }
}

/** Returns a function that turns each record into a row; the first record is the header, unless there is none. */
function recordReader(name: string, options: InputOptions, make: RowMaker, push: (row: Row) => void) {
  let columns: Columns | null = null;
  return (cells: string[], line: number): void => {
    if (columns === null) {
      columns = options.noHeader
        ? { id: 0, resource: -1, cells: cells.length }
        : findColumns(name, line, cells, options);
      if (!options.noHeader) return;
      refuseHeader(name, line, cells, options.column);
    }
    if (cells.length !== columns.cells) throw ragged(name, line, columns.cells, cells.length);
    const row = make.row(line, cells[columns.id]!, cells[columns.resource]);
    // Joined exports repeat their header.
    push(row.id === options.column && !options.noHeader ? make.rejected(line, row.id, 'repeated_header') : row);
  };
}

function openParser(delimiter: string, onRecord: (cells: string[]) => void): Parser {
  return new Parser({
    delimiter,
    // Listed, because detection by the first line would make other line ends part of an id.
    record_delimiter: ['\r\n', '\n', '\r'],
    skip_empty_lines: true,
    relax_column_count: true, // we count ourselves, to say which line
    max_record_size: maxRecordSize,
    on_record: (cells: string[]) => {
      onRecord(cells);
      return null; // nothing goes through the stream: pushing a row costs more than parsing it
    },
  });
}

/** Writes chunks to the parser; yields after each, last with the error that ended parsing, so that earlier rows are read first. */
async function* feed(parser: Parser, chunks: AsyncIterable<Buffer>): AsyncGenerator<Error | null> {
  let failure: Error | null = null;
  parser.on('error', (error) => {
    failure = error;
  });
  parser.resume(); // nothing comes out, but the stream must reach its end
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

/** Advice if the first line looks separated by another delimiter: then quotes are in the middle of cells. */
function delimiterHint(head: Buffer, delimiter: string): string | null {
  const [firstLine = ''] = head.toString().split(/[\r\n]/, 1);
  const unquoted = firstLine.replace(/"(?:[^"]|"")*"/g, '');
  const other = unquoted.includes(delimiter)
    ? undefined
    : delimiters.find(([character]) => unquoted.includes(character));
  return other === undefined
    ? null
    : `the first line looks as if ${other[1]} separated the columns: try --delimiter ${other[1]}`;
}

function ragged(name: string, line: number, expected: number, got: number): Error {
  return inputError(name, line, `expected ${expected} ${expected === 1 ? 'cell' : 'cells'}, got ${got}`, raggedNext);
}

const raggedNext =
  'a cell that holds the delimiter must be quoted; if something else separates the columns, add --delimiter';

/** The indexes of the columns to read, and the number of cells in each row. */
type Columns = { id: number; resource: number; cells: number };

/** Finds the columns in a header. Throws USAGE for a column that is missing, and for repeated names. */
function findColumns(name: string, line: number, header: string[], options: InputOptions): Columns {
  const twice = header.find((column, index) => header.indexOf(column) !== index);
  if (twice !== undefined) throw inputError(name, line, `two columns are named ${shown(twice)}`, 'rename one of them');
  const find = (column: string) => {
    const index = header.indexOf(column);
    if (index === -1) throw missing(name, line, header, column);
    return index;
  };
  const { column, resourceColumn } = options;
  return { id: find(column), resource: resourceColumn === null ? -1 : find(resourceColumn), cells: header.length };
}

function missing(name: string, line: number, header: string[], column: string): Error {
  const columns = header.slice(0, 20).map(shown).join(', ');
  const message = `no column ${shown(column)} in the header, which has: ${columns}.${suggest(column, header)}`;
  return inputError(name, line, message, columnAdvice(header, column));
}

function columnAdvice(header: string[], column: string): string {
  const delimiter = fittingDelimiter(header, column);
  if (delimiter) return `try --delimiter ${delimiter}`;
  if (column === 'id' && header.includes('id_safe')) {
    return 'id_safe holds ids changed for spreadsheets: use a report made without --spreadsheet-safe';
  }
  return 'name the column with --column, or add --no-header if the first line holds an id already';
}

function fittingDelimiter(header: string[], column: string): string | undefined {
  if (header.length > 1) return undefined;
  return delimiters.find(([character]) => header[0]?.split(character).includes(column))?.[1];
}

/** Common delimiters, and how they are typed in a shell. */
const delimiters = [
  [';', "';'"],
  ['\t', 'tab'],
  [',', ','],
  ['|', "'|'"],
] as const;

/**
 * Counts the lines of a CSV. The parser's own count takes a CRLF inside quotes for two lines, and gives the last line of a record;
 * messages name the first.
 */
class CsvLines {
  #end = 0; // last line of the last record
  #blank = 0; // blank lines up to there
  #parserLines = 0; // the parser's count up to there

  /** The line where this record, which the parser has just finished, begins. */
  advance(cells: string[], info: Info): number {
    const begin = this.next(info);
    const counted = info.lines - this.#parserLines - (info.empty_lines - this.#blank);
    this.#end = begin + (counted > 1 ? newlinesIn(cells) : 0);
    this.#blank = info.empty_lines;
    this.#parserLines = info.lines;
    return begin;
  }

  /** The line where the record begins that the parser has not finished. */
  next(info: Info): number {
    return this.#end + (info.empty_lines - this.#blank) + 1;
  }
}

function newlinesIn(cells: string[]): number {
  return cells.reduce((sum, cell) => sum + (cell.match(/\r\n|\n|\r/g)?.length ?? 0), 0);
}
