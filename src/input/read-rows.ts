import type { Row } from '../model/row.ts';
import { checkText } from './check-text.ts';
import { adviceToEndLine } from './convert-advice.ts';
import { decompress } from './decompress.ts';
import { inputError } from './input-error.ts';
import {
  checkOptions,
  detectDelimiter,
  detectFormat,
  type FileFacts,
  type Format,
  type InputOptions,
  type RowMaker,
  rowMaker,
} from './input-options.ts';
import type { InputFile } from './open-inputs.ts';
import { readCsv } from './read-csv.ts';
import { readJsonArray, readNdjson } from './read-json.ts';
import { readLines } from './read-lines.ts';

const batchSize = 1000;

/**
 * Reads the rows of all files in order, up to 1,000 at a time. An id that cannot be sent gives a row with the reason. Input that is not reliable as a
 * whole (not UTF-8, cut off, ragged, changed while it is read) throws USAGE with file and line. Leaving the loop early closes the files.
 */
export async function* readRows(files: InputFile[], options: InputOptions): AsyncGenerator<Row[]> {
  checkOptions(files, options);
  for (const [index, file] of files.entries()) {
    for await (const rows of readFile(file, index, options, files.length === 1)) yield* batches(rows);
  }
}

async function* readFile(
  file: InputFile,
  index: number,
  options: InputOptions,
  isAlone: boolean,
): AsyncGenerator<Row[]> {
  const format = detectFormat(file, options.format);
  let openLine: number | null = null;
  const onOpenEnd = (line: number) => {
    openLine = line;
    if (format !== 'json') file.onOpenEnd?.();
  };
  const text = checkText({ name: file.name, onOpenEnd }, decompress(file.name, file.open(), file.size));
  yield* readText(text, { file: index, name: file.name, format }, options, file);
  if (openLine === null || options.allowOpenEnd || !needsNewline(file, format, isAlone)) return;
  throw openEnd(file, openLine, options);
}

function readText(
  text: AsyncIterable<Buffer>,
  facts: FileFacts,
  options: InputOptions,
  file: InputFile,
): AsyncGenerator<Row[]> {
  if (facts.format === 'csv')
    return readCsv(facts, text, { ...options, delimiter: detectDelimiter(file, options.delimiter) });
  const make = rowMaker(facts, options);
  const read = { ndjson: readNdjson, json: readJsonArray, lines: readLines }[facts.format];
  return ended(read(file.name, text, make, options), make);
}

async function* ended(rows: AsyncGenerator<Row[]>, make: RowMaker): AsyncGenerator<Row[]> {
  yield* rows;
  make.end();
}

/**
 * Whether a last line without its newline is refused, because its id may be cut off. The plan of a single file shows its last id to the person who
 * confirms it. The closing bracket shows that an array is whole.
 */
function needsNewline({ isPipe, isUnattended }: InputFile, format: Format, isAlone: boolean): boolean {
  return format !== 'json' && (isPipe || isUnattended === true || !isAlone);
}

/**
 * The error for a last line without a newline. `split -b`, a copy that is cut off, and a program that dies leave such text, and the rest of an id can
 * name another object.
 */
function openEnd({ name, isPipe }: InputFile, line: number, { reads }: InputOptions): Error {
  const message = isPipe
    ? 'the last line has no newline: the program that writes the pipe may have died and cut off this id'
    : 'the last line has no newline, so its id may be cut off; nothing was sent';
  const next = isPipe ? 'use `set -o pipefail`, check that program, and end the last line' : adviceToEndLine(name);
  return inputError(name, line, message, reads === 'protected' ? next : `${next}\nif it is whole: --allow-open-end`);
}

function* batches(rows: Row[]): Generator<Row[]> {
  for (let at = 0; at < rows.length; at += batchSize) yield rows.slice(at, at + batchSize);
}
