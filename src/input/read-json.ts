import { messageOf } from '../errors.ts';
import { inputError } from './input-error.ts';
import type { InputOptions } from './input-options.ts';
import { rowOfRecord } from './json-record.ts';
import type { RowMaker } from './make-row.ts';
import type { Row } from './row.ts';
import { splitLines } from './split-lines.ts';

type Fields = Pick<InputOptions, 'column' | 'resourceColumn'>;

/** One JSON object or string a line; blank lines are no rows. Throws USAGE, naming the line, for what is not JSON. */
export async function* readNdjson(
  name: string,
  chunks: AsyncIterable<Buffer>,
  fields: Fields,
  make: RowMaker,
): AsyncGenerator<Row[]> {
  for await (const { first, texts } of splitLines(name, chunks)) {
    const rows: Row[] = [];
    for (const [index, text] of texts.entries()) {
      if (text.trim() === '') continue;
      const line = first + index;
      rows.push(rowOfRecord(line, parse(name, line, text), text, fields, make));
    }
    yield rows;
  }
}

function parse(name: string, line: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw inputError(name, line, `expected one JSON object or string, got something else: ${reason(error)}`);
  }
}

/** What the parser complains about, without the piece of the line it quotes. */
function reason(error: unknown): string {
  return messageOf(error).replace(/, ?(\.\.\.)?".*$/s, '');
}
