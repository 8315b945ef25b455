import type { Row } from '../model/row.ts';
import { inputError } from './input-error.ts';
import type { InputOptions, RowMaker } from './input-options.ts';

/** Reads one id per line, byte for byte; empty lines are not rows. Throws USAGE for a line that is a header, and for a first line that is JSON. */
export async function* readLines(
  name: string,
  chunks: AsyncIterable<Buffer>,
  make: RowMaker,
  { comments }: Pick<InputOptions, 'comments'>,
): AsyncGenerator<Row[]> {
  for await (const { first, texts } of splitLines(name, chunks)) {
    const rows: Row[] = [];
    for (const [index, text] of texts.entries()) {
      const id = comments === null ? text : withoutComment(text, comments);
      if (id !== '') rows.push(make.row(first + index, id, undefined));
    }
    yield rows;
  }
}

/** A line without its comment: `7  # keep` → `7`. Within an id the mark is a part of it. */
function withoutComment(text: string, mark: string): string {
  if (isComment(text, mark)) return '';
  for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1))
    if (/\s/.test(text[at - 1]!)) return text.slice(0, at).trimEnd();
  return text;
}

export function isComment(line: string, mark: string | null): boolean {
  return mark !== null && line.trimStart().startsWith(mark);
}

/** The maximum number of characters of a line, and of bytes of a CSV row, which bounds the memory for reading. */
export const maxRecordSize = 1024 * 1024;

/** Consecutive lines; `first` is the number of the first line. */
type Lines = { first: number; texts: string[] };

/** Splits text of whole UTF-8 characters at CRLF, LF or CR. Throws USAGE for a line that is too long. */
export async function* splitLines(name: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Lines> {
  let first = 1;
  let rest = '';
  for await (const chunk of chunks) {
    const texts = split(rest + chunk.toString());
    rest = texts.pop()!;
    if (rest.length > maxRecordSize) throw tooLong(name, first + texts.length, rest);
    yield { first, texts };
    first += texts.length;
  }
  if (rest !== '') yield { first, texts: [rest.replace(/\r$/, '')] };
}

function tooLong(name: string, line: number, text: string): Error {
  const next = text.trimStart().startsWith('[')
    ? 'for a JSON array use --format json'
    : 'check that this is a list: an id has at most 1 KiB';
  return inputError(name, line, 'a line longer than 1 MiB', next);
}

/** Splits a text into lines. The last element is the unfinished line. A CR at the end stays with it, because its LF may follow. */
export function split(text: string): string[] {
  if (!text.includes('\r')) return text.split('\n');
  const isOpen = text.endsWith('\r');
  const texts = (isOpen ? text.slice(0, -1) : text).split(/\r\n|\n|\r/);
  if (isOpen) texts.push(`${texts.pop()}\r`);
  return texts;
}
