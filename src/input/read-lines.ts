import { inputError, shown } from './input-error.ts';
import type { RowMaker } from './make-row.ts';
import type { Row } from './row.ts';
import { splitLines } from './split-lines.ts';

/** One id a line, byte for byte; empty lines are no rows. Throws USAGE for a first line that is the name of the column. */
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
    if (isFirst && rows[0]) refuseHeader(name, rows[0], column);
    isFirst &&= rows.length === 0;
    yield rows;
  }
}

/** A header taken as an id would be sent; whoever really has such an id can name another column. */
export function refuseHeader(name: string, row: Row, column: string): void {
  if (row.id !== column) return;
  const next = 'for a CSV with a header use --format csv without --no-header; if it is an id, name another --column';
  throw inputError(name, row.line, `the first id is ${shown(column)}, the name of a column`, next);
}
