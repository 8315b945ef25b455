import { type CsvError, Parser } from 'csv-parse';
import type { Row } from '../model/row.ts';
import { type Columns, delimiters, findColumns } from './csv-header.ts';
import { CsvLines } from './csv-lines.ts';
import { inputError } from './input-error.ts';
import type { InputOptions } from './input-options.ts';
import type { RowMaker } from './make-row.ts';
import { peek } from './peek.ts';
import { refuseHeader } from './refuse-header.ts';
import { maxRecordSize } from './split-lines.ts';

/** The rows of a CSV. Throws USAGE, naming the line, for what is not one table: ragged rows, stray or unclosed quotes. */
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
    if (step) throw inWords(name, lines.next(parser.info), step, delimiterHint(head, options.delimiter));
  }
}

/** What happens to one record: the first is the header, unless there is none. */
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
    // Exports that were joined hold their header again.
    push(row.id === options.column && !options.noHeader ? make.rejected(line, row.id, 'repeated_header') : row);
  };
}

function openParser(delimiter: string, onRecord: (cells: string[]) => void): Parser {
  return new Parser({
    delimiter,
    // Written out, because what is detected on the first line would make later line ends part of an id.
    record_delimiter: ['\r\n', '\n', '\r'],
    skip_empty_lines: true,
    relax_column_count: true, // we count ourselves, to say which line
    max_record_size: maxRecordSize,
    on_record: (cells: string[]) => {
      onRecord(cells);
      return null; // nothing goes through the stream: a push a row costs more than parsing it
    },
  });
}

/** Hands chunks to the parser; yields after each, at last with the error that ended it, so that rows before it are seen. */
async function* feed(parser: Parser, chunks: AsyncIterable<Buffer>): AsyncGenerator<Error | null> {
  let failure: Error | null = null;
  parser.on('error', (error) => {
    failure = error;
  });
  parser.resume(); // nothing comes out, but the end must be able to pass
  for await (const chunk of chunks) {
    await new Promise<void>((done) => parser.write(chunk, () => done()));
    yield failure;
  }
  await new Promise<void>((done) => parser.end(() => done()));
  yield failure;
}

const words: Record<string, string> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote opens in the row that begins here and is never closed',
  CSV_MAX_RECORD_SIZE: 'the row that begins here is longer than 1 MiB: is a quote not closed?',
  CSV_INVALID_CLOSING_QUOTE: 'a quote in the row that begins here ends before its cell does',
  INVALID_OPENING_QUOTE: 'a quote in the row that begins here stands inside a cell that does not begin with one',
};

function inWords(name: string, line: number, error: Error, hint: string | null): Error {
  const found = words[(error as CsvError).code];
  if (!found) return error;
  return inputError(name, line, found, hint ?? 'a cell with quotes must be quoted, and each quote in it doubled');
}

/** With the wrong delimiter, quotes stand in the middle of what is taken for a cell. */
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
  'a cell that holds the delimiter must stand in quotes; if something else separates the columns, add --delimiter';
