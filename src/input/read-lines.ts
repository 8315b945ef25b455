import type { Row } from '../model/row.ts';
import type { RowMaker } from './make-row.ts';
import { refuseHeader } from './refuse-header.ts';
import { splitLines } from './split-lines.ts';

/** One id a line, byte for byte; empty lines are no rows. Throws USAGE for a first line that is a header or JSON. */
export async function* readLines(
  name: string,
  chunks: AsyncIterable<Buffer>,
  column: string,
  make: RowMaker,
): AsyncGenerator<Row[]> {
  let isFirst = true;
  for await (const { first, texts } of splitLines(name, chunks)) {
    const rows: Row[] = [];
    for (const [index, id] of texts.entries()) if (id !== '') rows.push(make.row(first + index, id, null));
    if (isFirst && rows[0]) refuseHeader(name, rows[0].line, [rows[0].id], column);
    isFirst &&= rows.length === 0;
    yield rows;
  }
}
