import { madeId } from '../sandbox/objects.ts';

/** What the sandbox of the quickstart holds. */
export const heldAnnotations = 2_000;

const listed = 1_940; // of the held ones; the others must survive
const alreadyGone = 40; // listed, but nobody has them any more
const listedTwice = 12;

/** As they come out of spreadsheets and joined exports. */
const unusable = ['', '..', ' a-000017', 'a-000018 ', '1.2E+05', 'a-000019/comments', 'a-000020?force=true', 'id'];

/** The sample list, and what has to become of it. */
export type SampleList = { csv: string; rows: number; listedIds: string[]; otherIds: string[]; unusableRows: number };

/** 2,000 rows as somebody might export them: some stand twice, some are gone already, some are no ids. Always the same. */
export function makeSampleList(): SampleList {
  const ids = Array.from({ length: heldAnnotations + alreadyGone }, (_, i) => madeId('annotations', i + 1));
  const otherIds = ids.slice(listed, heldAnnotations);
  const listedIds = [...ids.slice(0, listed), ...ids.slice(heldAnnotations)];
  const twice = Array.from({ length: listedTwice }, (_, i) => listedIds[(i + 1) * 150]!);
  const cells = scatter(listedIds, [...twice, ...unusable]);
  const csv = ['id,author,last_opened', ...cells.map(rowOf), ''].join('\n');
  return { csv, rows: cells.length, listedIds, otherIds, unusableRows: unusable.length };
}

/** The extras at even distances among the ids, from the middle on. */
function scatter(ids: string[], extras: string[]): string[] {
  const cells = [...ids];
  const gap = Math.floor(ids.length / 2 / extras.length);
  for (const [i, extra] of extras.entries()) cells.splice(ids.length / 2 + i * gap, 0, extra);
  return cells;
}

const authors = ['ana', 'bo', 'chen', 'dmitri', 'esi'];

function rowOf(id: string, index: number): string {
  const day = new Date(Date.UTC(2019, 0, 1 + (index % 700))).toISOString().slice(0, 10);
  return `${id},${authors[index % authors.length]},${day}`;
}
