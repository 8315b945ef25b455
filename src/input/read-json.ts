import { messageOf } from '../errors.ts';
import type { Row } from '../model/row.ts';
import { ArraySplitter } from './array-splitter.ts';
import { adviceToDropCommas, adviceToSplit } from './convert-advice.ts';
import { inputError } from './input-error.ts';
import type { RowMaker } from './input-options.ts';
import { type Fields, rowsOfRecord } from './json-record.ts';
import { isComment, splitLines } from './read-lines.ts';

/** Reads one JSON object or string per line; blank lines are not rows. Throws USAGE, naming the line, for a line that is not JSON. */
export async function* readNdjson(
  name: string,
  chunks: AsyncIterable<Buffer>,
  make: RowMaker,
  fields: Fields,
): AsyncGenerator<Row[]> {
  let isFirst = true;
  for await (const { first, texts } of splitLines(name, chunks)) {
    const rows: Row[] = [];
    for (let index = 0; index < texts.length; index++) {
      const text = texts[index]!;
      if (text.trim() === '' || isComment(text, fields.comments)) continue;
      const line = first + index;
      if (isFirst && text.trimStart().startsWith('[')) throw inputError(name, line, gotArray, 'use --format json');
      const value = parse(text, (why) => inputError(name, line, `${expected}: ${why}`, adviceFor(name, text)));
      rows.push(...rowsOfRecord({ name, line, text }, value, fields, make, isFirst));
      isFirst = false;
    }
    yield rows;
  }
}

/**
 * Reads the elements of one JSON array, objects or strings. Their `line` is their number, from 1, since all may be on one line. Throws USAGE, naming
 * the element, if one is not JSON, and for an array without an end.
 */
export async function* readJsonArray(
  name: string,
  chunks: AsyncIterable<Buffer>,
  make: RowMaker,
  fields: Fields,
): AsyncGenerator<Row[]> {
  const elements = new ArraySplitter(name);
  let n = 0;
  for await (const chunk of chunks) {
    const rows: Row[] = [];
    for (const element of elements.split(chunk.toString())) {
      n += 1;
      const value = parse(element, (why) =>
        inputError(name, null, `element ${n} of the array: ${expected}: ${why}`, again),
      );
      rows.push(...rowsOfRecord({ name, line: n, text: element.trim() }, value, fields, make, n === 1));
    }
    yield rows;
  }
  elements.end();
}

const expected = 'expected one JSON object or string, got something else';
const again = 'export or transfer it again: it may be cut off or damaged';

/**
 * The advice for an object over several lines, as programs print it for people, for several in one line, for lines cut from an array, or for text that
 * is not JSON at all.
 */
function adviceFor(name: string, line: string): string {
  if (/^\s*\{\s*$/.test(line)) return adviceToSplit(name, '.');
  if (/\}\s*\{/.test(line)) return adviceToSplit(name, '.');
  if (isJson(line.replace(/,\s*$/, ''))) return adviceToDropCommas(name);
  return /^\s*["{]/.test(line) ? again : 'for ids without quotes use --format lines, for a table --format csv';
}

const gotArray = 'expected one JSON object or string per line, got an array';

function parse(text: string, toError: (why: string) => Error): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw toError(reason(error));
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The parser's message, without the text that it quotes. */
function reason(error: unknown): string {
  return messageOf(error).replace(/, ?(\.\.\.)?".*$/s, '');
}
