import type { Row } from '../model/row.ts';
import { checkText } from './check-text.ts';
import { decompress } from './decompress.ts';
import { checkOptions, delimiterOf, formatOf, type InputOptions, rowMaker } from './input-options.ts';
import type { InputFile } from './open-inputs.ts';
import { readCsv } from './read-csv.ts';
import { readJsonArray, readNdjson } from './read-json.ts';
import { readLines } from './read-lines.ts';

const batchSize = 1000;

/**
 * The rows of all files in order, up to 1,000 at a time. An id that cannot be sent gives a row with the reason; input that is not
 * reliable as a whole (not UTF-8, cut off, ragged, changed meanwhile) throws USAGE with file and line. Leaving the loop early closes the
 * files.
 */
export async function* readRows(files: InputFile[], options: InputOptions): AsyncGenerator<Row[]> {
  checkOptions(files, options);
  for (const [index, file] of files.entries()) {
    for await (const rows of readFile(file, index, options)) yield* batches(rows);
  }
}

function readFile(file: InputFile, index: number, options: InputOptions): AsyncGenerator<Row[]> {
  const format = formatOf(file, options.format);
  const isPipe = file.isPipe && format !== 'json'; // the closing bracket shows that an array is whole
  const text = checkText({ ...file, isPipe }, decompress(file.name, file.open()));
  const make = rowMaker(index, options);
  switch (format) {
    case 'csv':
      return readCsv(file.name, text, { ...options, delimiter: delimiterOf(file, options.delimiter) }, make);
    case 'ndjson':
      return readNdjson(file.name, text, options, make);
    case 'json':
      return readJsonArray(file.name, text, options, make);
    case 'lines':
      return readLines(file.name, text, options.column, make);
  }
}

function* batches(rows: Row[]): Generator<Row[]> {
  for (let at = 0; at < rows.length; at += batchSize) yield rows.slice(at, at + batchSize);
}
