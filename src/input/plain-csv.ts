import type { InputOptions } from './input-options.ts';
import { maxRecordSize, split } from './read-lines.ts';

const quote = 0x22;
const lineFeed = 0x0a;

/** Takes a record of a CSV, the line on which it begins, and its text, or '' if the text was not requested. */
export type TakeRecord = (cells: string[], line: number, raw: string) => void;

type PlainForm = Pick<InputOptions, 'delimiter' | 'comments'>;

/** The state in which a parser continues: the number of the line after the last record, and the bytes from there on that are already read. */
export type PlainEnd = { line: number; bytes: Buffer };

/**
 * Calls `take` with the records of a CSV up to the first piece with a quote. Without a quote each line is a record, and splitting costs a fraction of
 * parsing. The line that ends with the file is not among them. Yields after each piece, then throws what `take` threw.
 */
export async function* takePlain(
  chunks: AsyncIterator<Buffer>,
  form: PlainForm,
  take: TakeRecord,
): AsyncGenerator<void, PlainEnd> {
  let rest: Buffer = Buffer.alloc(0); // the unfinished last line of the previous piece
  let line = 1;
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    const piece = next.value;
    if (piece.includes(quote) || rest.length + piece.length > maxRecordSize) {
      return { line, bytes: Buffer.concat([rest, piece]) };
    }
    const end = piece.lastIndexOf(lineFeed) + 1;
    if (end > 0) {
      const lines = split(rest.toString() + piece.toString('utf8', 0, end));
      lines.pop(); // '': a line feed ends the text
      const failure = takeLines(lines, line, form, take);
      yield;
      if (failure !== null) throw failure.error;
      line += lines.length;
    }
    rest = end > 0 ? Buffer.from(piece.subarray(end)) : Buffer.concat([rest, piece]);
  }
  return { line, bytes: rest };
}

/** Calls `take` for each line, and returns what it threw. Empty lines are not records. */
function takeLines(
  lines: readonly string[],
  first: number,
  { delimiter, comments }: PlainForm,
  take: TakeRecord,
): { error: unknown } | null {
  try {
    for (let n = 0; n < lines.length; n++) {
      const text = lines[n]!;
      if (text !== '' && (comments === null || !text.startsWith(comments)))
        take(text.includes(delimiter) ? text.split(delimiter) : [text], first + n, '');
    }
    return null;
  } catch (error) {
    return { error };
  }
}
