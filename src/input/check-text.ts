import { isUtf8 } from 'node:buffer';
import { adviceToDecode, adviceToEndLines } from './convert-advice.ts';
import { peek } from './decompress.ts';
import { inputError } from './input-error.ts';
import type { InputFile } from './open-inputs.ts';

const lf = 10;
const cr = 13;
const utf8Mark = Buffer.of(0xef, 0xbb, 0xbf);

/**
 * Yields chunks of whole UTF-8 characters, without the byte order mark. Throws USAGE, naming the line, for bytes that are not UTF-8: replaced by
 * U+FFFD they would be another id. Calls `onOpenEnd` at the end if the last line has no newline.
 */
export async function* checkText(
  file: Pick<InputFile, 'name'> & { onOpenEnd?(line: number): void },
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const { head, all } = await peek(chunks, 4_096);
  const encoding = encodingOf(head);
  let held: Buffer = Buffer.alloc(0);
  let skip = head.subarray(0, 3).equals(utf8Mark) ? 3 : 0;
  let line = 1;
  let last = lf;
  for await (const chunk of all) {
    if (encoding !== 'UTF-8') throw wrongEncoding(file.name, encoding); // here it closes the source of the chunks
    if (endsWithNul(head)) throw nulEnded(file.name);
    const bytes = held.length === 0 ? chunk.subarray(skip) : Buffer.concat([held, chunk]);
    skip = 0;
    const whole = bytes.subarray(0, wholeCharacters(bytes));
    held = bytes.subarray(whole.length);
    if (!isUtf8(whole)) throw notUtf8(file.name, line + badLine(whole, last));
    line += countLineEnds(whole, last);
    last = whole.at(-1) ?? last;
    if (whole.length > 0) yield whole;
  }
  if (held.length > 0) throw notUtf8(file.name, line);
  if (last !== lf && last !== cr) file.onOpenEnd?.(line);
}

/** The number of bytes that belong to complete characters, by their lead bytes. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) break;
    if (byte >= 0xc0) return lengthOf(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

function lengthOf(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}

/** The number of line ends (CRLF, LF or CR) that are complete or begin here; a CRLF cut in two counts with its CR. */
function countLineEnds(bytes: Buffer, before: number): number {
  let ends = 0;
  let previous = before;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!; // by index, because an iterator takes several times as long
    if (byte === cr || (byte === lf && previous !== cr)) ends += 1;
    previous = byte;
  }
  return ends;
}

/** The number of line ends before the first line that is not UTF-8. */
function badLine(bytes: Buffer, before: number): number {
  let good = 0;
  for (let end = bytes.indexOf(lf); end !== -1; end = bytes.indexOf(lf, good)) {
    if (!isUtf8(bytes.subarray(good, end + 1))) break;
    good = end + 1;
  }
  return countLineEnds(bytes.subarray(0, good), before);
}

/** The byte order marks of other encodings. The mark of UTF-32 in little endian begins with the mark of UTF-16. */
const wideMarks = [
  ['fffe0000', 'UTF-32'],
  ['0000feff', 'UTF-32'],
  ['fffe', 'UTF-16'],
  ['feff', 'UTF-16'],
] as const;

function encodingOf(head: Buffer): 'UTF-8' | 'UTF-16' | 'UTF-32' | 'UTF-16LE' | 'UTF-16BE' {
  const marked = wideMarks.find(([mark]) => head.toString('hex', 0, 4).startsWith(mark))?.[1];
  return marked ?? unmarked.find(([bytes]) => bytes.test(head.toString('latin1')))?.[1] ?? 'UTF-8';
}

/** A line of ASCII characters in UTF-16 without a byte order mark. In UTF-8 every second one would be NUL, and its end. */
const unmarked = [
  [/^(?:[^\0\n]\0){2,}\n\0/, 'UTF-16LE'],
  [/^(?:\0[^\0\n]){2,}\0\n/, 'UTF-16BE'],
] as const;

/** Whether NUL ends the ids, as `find -print0` and `sort -z` write them. */
function endsWithNul(head: Buffer): boolean {
  return head.includes(0) && !head.includes(lf) && !head.includes(cr);
}

function nulEnded(name: string): Error {
  const next = `if NUL ends each id:\n${adviceToEndLines(name)}\nif this is UTF-16: ${adviceToDecode(name, 'UTF-16LE')}`;
  return inputError(name, null, 'the text holds NUL and no line ends', next);
}

function wrongEncoding(name: string, encoding: string): Error {
  return inputError(name, null, `expected UTF-8, got ${encoding}`, adviceToDecode(name, encoding));
}

function notUtf8(name: string, line: number): Error {
  const next = `save it as UTF-8 where it comes from; if it is Windows-1252:\n${adviceToDecode(name, 'WINDOWS-1252')}`;
  return inputError(name, line, 'bytes that are not UTF-8', next);
}
