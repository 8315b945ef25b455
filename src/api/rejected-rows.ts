import { createReadStream } from 'node:fs';
import { parse } from 'csv-parse';

/** A row of a list that is no id, and why. */
type RejectedRow = { line: number; id: string; code: string };

const shownRows = 20;
const shownLength = 200;

/** The first of the rows that `writeRejects` wrote into a file; none without a file. */
export async function readRejectedRows(path: string | null): Promise<RejectedRow[]> {
  if (path === null) return [];
  const rows: RejectedRow[] = [];
  const file = createReadStream(path);
  try {
    for await (const { line, id_safe: id, code } of file.pipe(parse({ columns: true, to: shownRows })))
      rows.push({ line: Number(line), id: id.slice(0, shownLength), code });
  } finally {
    file.destroy();
  }
  return rows;
}
