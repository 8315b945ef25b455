import type { Position } from '../model/row.ts';
import type { OutcomeRow, Page } from './outcome-row.ts';

const rowsPerPage = 1_000;

/** Merges streams that are each in input order into one. Holds one page of each stream and one of its own. */
export async function* mergePages(streams: AsyncIterator<Page>[]): AsyncGenerator<OutcomeRow[]> {
  let cursors = await loadAll(streams.map((stream) => ({ stream, page: noPage, at: 0 })));
  let rows: OutcomeRow[] = [];
  while (cursors.length > 0) {
    const [first, second] = cursors.toSorted((a, b) => compare(headOf(a), headOf(b)));
    takeRows(first!, second ? headOf(second) : null, rows);
    cursors = await loadAll(cursors);
    if (rows.length < rowsPerPage) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
}

/** A stream and where we are in its current page. */
type Cursor = { stream: AsyncIterator<Page>; page: Page; at: number };

const noPage: Page = { positions: [], rows: [] };

/** Gives each cursor that is at the end of its page the next one; without those whose stream has ended. */
async function loadAll(cursors: Cursor[]): Promise<Cursor[]> {
  const ended = new Set<Cursor>();
  for (const cursor of cursors) {
    while (cursor.at === cursor.page.rows.length && !ended.has(cursor)) {
      const next = await cursor.stream.next();
      if (next.done) ended.add(cursor);
      else [cursor.page, cursor.at] = [next.value, 0];
    }
  }
  return ended.size === 0 ? cursors : cursors.filter((cursor) => !ended.has(cursor));
}

/** Moves the rows before `end` out of the page; at least one. */
function takeRows(cursor: Cursor, end: Position | null, into: OutcomeRow[]): void {
  const { positions, rows } = cursor.page;
  do into.push(rows[cursor.at++]!);
  while (cursor.at < rows.length && (end === null || compare(positions[cursor.at]!, end) < 0));
}

function headOf({ page, at }: Cursor): Position {
  return page.positions[at]!;
}

function compare(a: Position, b: Position): number {
  return a.file - b.file || a.line - b.line;
}
