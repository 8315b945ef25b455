import { cutId } from '../input/spool-files.ts';
import { type Cell, isDoubtful, isMarked, isSettled } from '../ledger/cell.ts';
import { decodeBlock, decodeChunk, indexOfId } from '../ledger/manifest.ts';
import {
  decodeLedger,
  type OutcomeRow,
  present,
  readPutBackTexts,
  rowsOfBlock,
  rowsOfChunk,
} from '../ledger/outcome-rows.ts';
import { isFinalized, type Run } from '../ledger/run.ts';
import { readNumbered } from '../ledger/tally.ts';
import { hasExcerpt } from '../model/outcome.ts';
import type { Resource } from '../model/resource.ts';
import type { SettledRow } from '../model/row.ts';
import { type RedisClient, readClock, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** A row of a run with the wanted id. `open` is null for a row with an outcome. */
export type FoundRow = OutcomeRow & { open: OpenId | null };

/** The known facts about an id without an outcome. */
export type OpenId = {
  isInFlight: boolean; // a request may be on its way
  inDoubt: boolean; // an earlier request may have been executed
  nextTryAt: number | null; // ms since 1970; null: it is not waiting for a later pass
};

/** An object of the API. */
export type Wanted = { resource: Resource; id: string };

/** The rows of a run with an id, at most a hundred, and the number of further rows. */
export type FoundRows = { rows: FoundRow[]; more: number };

const rowsMax = 100;
const keysPerRead = 16;

/**
 * Finds the rows of a run with this id: the row that is sent, and rows that were settled while reading. Reads a few chunks at a time; calls `onRows`
 * with how many ids or rows were searched. Only reads. Throws INTERNAL for a chunk that Redis has lost.
 */
export async function findId(
  redis: RedisClient,
  run: Run,
  { resource, id }: Wanted,
  onRows: (count: number) => void,
): Promise<FoundRows> {
  const sent = await findSent(redis, run, { resource, id }, onRows);
  const found: FoundRows = { rows: sent === null ? [] : [sent], more: 0 };
  for await (const row of findSettled(redis, run, { resource, id }, onRows)) {
    if (found.rows.length < rowsMax) found.rows.push(row);
    else found.more += 1;
  }
  return found;
}

/** Finds the row that is sent. A run sends an id once, so the search ends with it. */
async function findSent(
  redis: RedisClient,
  run: Run,
  { resource, id }: Wanted,
  onRows: (count: number) => void,
): Promise<FoundRow | null> {
  for await (const part of readNumbered(redis, (n) => keys.manifest(run.id, n), run.chunks, keysPerRead)) {
    for (const { n, bytes } of part) {
      const manifest = present(run, `manifest chunk ${n}`, bytes);
      const index = indexOfId(n, manifest, resource, id);
      if (index !== -1) return readSent(redis, run, { n, manifest, index });
    }
    onRows(Math.round((run.ids / run.chunks) * part.length));
  }
  return null;
}

type Place = { n: number; manifest: Buffer; index: number };

async function readSent(redis: RedisClient, run: Run, { n, manifest, index }: Place): Promise<FoundRow> {
  const [value] = await readValues(redis, [keys.ledger(run.id, n)]);
  const chunk = decodeChunk(n, manifest);
  const ledger = decodeLedger(run, chunk, value!);
  const row = rowsOfChunk(run, chunk, ledger, []).rows[index]!;
  const cell = ledger.cells[index]!;
  const excerpt = isSettled(cell)
    ? hasExcerpt(row.outcome) && (await redis.hget(keys.details(run.id), `${n}.${index}`))
    : (await readPutBackTexts(redis, run, n, ledger.cells))[index];
  const isOpen = !isFinalized(run.state) && !isSettled(cell);
  return { ...row, excerpt: excerpt || '', open: isOpen ? await readOpen(redis, run, n, cell) : null };
}

async function readOpen(redis: RedisClient, run: Run, chunk: number, cell: Cell): Promise<OpenId> {
  const [due, now] = await Promise.all([
    redis.zscore(keys.deferred(run.id), String(chunk)),
    readClock(redis, keys.deferred(run.id)),
  ]);
  const nextTryAt = due === null ? null : Date.now() + Math.ceil(Number(due)) - now;
  return { isInFlight: isMarked(cell), inDoubt: isDoubtful(cell), nextTryAt };
}

/** The rows with this id that were never sent, including rows whose resource is unknown. */
async function* findSettled(
  redis: RedisClient,
  run: Run,
  { resource, id }: Wanted,
  onRows: (count: number) => void,
): AsyncGenerator<FoundRow> {
  const shown = cutId(id); // as in the blocks
  const isWanted = (row: SettledRow) => row.id === shown && (row.resource === resource || row.resource === null);
  for await (const part of readNumbered(redis, (n) => keys.settled(run.id, n), run.blocks, keysPerRead)) {
    for (const { n, bytes } of part) {
      const { rows } = decodeBlock(n, present(run, `block ${n} of settled rows`, bytes));
      for (const row of rowsOfBlock(run, rows.filter(isWanted)).rows) yield { ...row, open: null };
      onRows(rows.length);
    }
  }
}
