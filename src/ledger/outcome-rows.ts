import { ExpungeError } from '../errors.ts';
import { isoSecond } from '../format.ts';
import { hasExcerpt, type Outcome } from '../model/outcome.ts';
import { type Resource, resourcesIn } from '../model/resource.ts';
import type { Chunk, Position, SettledRow } from '../model/row.ts';
import { type RedisClient, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import {
  type Cell,
  cellReader,
  decodeLedgerChunk,
  headerBytes,
  isSettled,
  type LedgerChunk,
  readCell,
  readSettledAt,
  timesMarked,
} from './cell.ts';
import { decodeBlock, decodeChunk } from './manifest.ts';
import { describePutBack, readPutBack } from './put-back.ts';
import type { Run } from './run.ts';
import { readNumbered } from './tally.ts';

/** One row of the input and its outcome, as reports show it. */
export type OutcomeRow = {
  file: string; // as named when the run was made; two files can have the same name
  line: number;
  resource: Resource | null;
  id: string;
  outcome: Outcome | 'pending';
  status: number | null;
  attempts: number;
  settledAt: string; // latest ISO time, to the second, at which the id was settled, never after the run's end; '' = not yet, or settled while reading
  code: string;
  excerpt: string; // the server's error answer, the first position of a duplicate, or of an id without an outcome, its last answer in words
};

/** Rows with their positions, in input order. */
export type Page<Row = OutcomeRow> = { positions: Position[]; rows: Row[] };

const keysPerRead = 16;

/**
 * Reads all rows of a run in input order: by file in the order they were named, then by line. Holds a few chunks in memory, whatever the size of the
 * run. Throws USAGE for a run whose list was not written completely, and INTERNAL for a chunk that Redis has lost. If the run continues, each row is
 * as it was when its chunk was read.
 */
export function readOutcomes(redis: RedisClient, run: Run): AsyncGenerator<OutcomeRow[]> {
  if (run.state === 'preparing') {
    throw new ExpungeError('USAGE', `run ${run.id} has no rows to report yet: its list is being written to Redis`, {
      next: (toType) => toType('status', run.id),
    });
  }
  return mergePages(readAllPages(redis, run));
}

/** Reads the positions of all rows of a run, in input order; see `readOutcomes`. */
export function readPositions(redis: RedisClient, run: Run): AsyncGenerator<Position[]> {
  return mergePages(readAllPages(redis, run).map(positionsOf));
}

async function* positionsOf(pages: AsyncIterable<Page>): AsyncGenerator<Page<Position>> {
  for await (const { positions } of pages) yield { positions, rows: positions };
}

function readAllPages(redis: RedisClient, run: Run): AsyncGenerator<Page>[] {
  const chunks = resourcesIn(run.definitions).map((resource) => readChunkPages(redis, run, resource));
  return [...chunks, readBlockPages(redis, run)];
}

/**
 * The rows of one resource, one page per chunk. Only chunks of the same resource are in input order; chunks of other resources can be anywhere
 * between them. So each resource is read separately and skips the chunks of the others.
 */
async function* readChunkPages(redis: RedisClient, run: Run, resource: Resource): AsyncGenerator<Page> {
  for await (const part of readNumbered(redis, (n) => keys.manifest(run.id, n), run.chunks, keysPerRead)) {
    const all = part.map(({ n, bytes }) => decodeChunk(n, present(run, `manifest chunk ${n}`, bytes)));
    const chunks = all.filter((chunk) => chunk.resource === resource);
    const ledgers = await readLedgers(redis, run, chunks);
    const excerpts = await Promise.all(chunks.map((chunk, i) => readExcerpts(redis, run, chunk, ledgers[i]!)));
    for (const [i, chunk] of chunks.entries()) yield rowsOfChunk(run, chunk, ledgers[i]!, excerpts[i]!);
  }
}

/** The rows settled while reading, one page per block. */
async function* readBlockPages(redis: RedisClient, run: Run): AsyncGenerator<Page> {
  for await (const part of readNumbered(redis, (n) => keys.settled(run.id, n), run.blocks, keysPerRead)) {
    for (const { n, bytes } of part) {
      yield rowsOfBlock(run, decodeBlock(n, present(run, `block ${n} of settled rows`, bytes)).rows);
    }
  }
}

async function readLedgers(redis: RedisClient, run: Run, chunks: Chunk[]): Promise<LedgerChunk[]> {
  if (chunks.length === 0) return [];
  const values = await readValues(
    redis,
    chunks.map(({ n }) => keys.ledger(run.id, n)),
  );
  return chunks.map((chunk, i) => decodeLedger(run, chunk, values[i]!));
}

/** Decodes the ledger of a chunk. Throws INTERNAL if Redis has lost it, or a part of it. */
export function decodeLedger(run: Run, { n, ids }: Chunk, value: Buffer | null): LedgerChunk {
  const bytes = present(run, `ledger chunk ${n}`, value);
  if (bytes.length === headerBytes + 2 * ids.length) return decodeLedgerChunk(bytes);
  throw new ExpungeError(
    'INTERNAL',
    `run ${run.id}: ledger chunk ${n} has ${bytes.length} bytes for ${ids.length} ids`,
  );
}

/** Reads excerpts, parallel to the ids of the chunk. Ids that the API confirmed as deleted have none, and most chunks have only such ids. */
async function readExcerpts(
  redis: RedisClient,
  run: Run,
  chunk: Chunk,
  ledger: LedgerChunk,
): Promise<(string | null)[]> {
  const excerpts: (string | null)[] = await readPutBackTexts(redis, run, chunk.n, ledger.cells);
  const quoted = [...ledger.cells.keys()].filter((i) => isQuoted(ledger.cells[i]!));
  if (quoted.length === 0) return excerpts;
  const found = await redis.hmget(keys.details(run.id), ...quoted.map((i) => `${chunk.n}.${i}`));
  for (const [at, i] of quoted.entries()) excerpts[i] = found[at]!;
  return excerpts;
}

/** By index: the last answer of an id that has no outcome yet, in words. */
export async function readPutBackTexts(
  redis: RedisClient,
  run: Run,
  chunk: number,
  cells: readonly Cell[],
): Promise<string[]> {
  const texts: string[] = [];
  if (!cells.some(isMarkedBefore)) return texts;
  for (const [index, answer] of await readPutBack(redis, run.id, chunk))
    if (!isSettled(cells[index]!)) texts[index] = describePutBack(answer);
  return texts;
}

function isMarkedBefore(cell: Cell): boolean {
  return !isSettled(cell) && timesMarked(cell) > 0;
}

function isQuoted(cell: number): boolean {
  return hasExcerpt(readCell(cell).outcome);
}

/** Throws INTERNAL for bytes that Redis has lost. */
export function present(run: Run, what: string, bytes: Buffer | null): Buffer {
  if (bytes === null) throw new ExpungeError('INTERNAL', `run ${run.id}: ${what} is missing in Redis`);
  return bytes;
}

const rowsPerPage = 1_000;

/** Merges streams that are each in input order into one. Holds one page of each stream and one more in memory. */
export async function* mergePages<Row>(streams: AsyncIterator<Page<Row>>[]): AsyncGenerator<Row[]> {
  let cursors = await loadAll(
    streams.map((stream) => ({ stream, page: { positions: [], rows: [] } as Page<Row>, at: 0 })),
  );
  let rows: Row[] = [];
  while (cursors.length > 0) {
    const [first, second] = cursors.toSorted((a, b) => comparePositions(headOf(a), headOf(b)));
    takeRows(first!, second ? headOf(second) : null, rows);
    cursors = await loadAll(cursors);
    if (rows.length < rowsPerPage) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
}

/** A stream, its current page and the index of the next row in it. */
type Cursor<Row> = { stream: AsyncIterator<Page<Row>>; page: Page<Row>; at: number };

/** Loads the next page for each cursor at the end of its page. Returns the cursors whose stream has not ended. */
async function loadAll<Row>(cursors: Cursor<Row>[]): Promise<Cursor<Row>[]> {
  const ended = new Set<Cursor<Row>>();
  for (const cursor of cursors) {
    while (cursor.at === cursor.page.rows.length && !ended.has(cursor)) {
      const next = await cursor.stream.next();
      if (next.done) ended.add(cursor);
      else [cursor.page, cursor.at] = [next.value, 0];
    }
  }
  return ended.size === 0 ? cursors : cursors.filter((cursor) => !ended.has(cursor));
}

/** Moves the rows before `end` out of the page, at least one; null = all rows. */
function takeRows<Row>(cursor: Cursor<Row>, end: Position | null, into: Row[]): void {
  const { positions, rows } = cursor.page;
  do into.push(rows[cursor.at++]!);
  while (cursor.at < rows.length && (end === null || comparePositions(positions[cursor.at]!, end) < 0));
}

function headOf({ page, at }: Cursor<unknown>): Position {
  return page.positions[at]!;
}

export function comparePositions(a: Position, b: Position): number {
  return a.file - b.file || a.line - b.line;
}

/** The rows of a chunk. `excerpts` is parallel to its ids. Pure. */
export function rowsOfChunk(
  run: Run,
  chunk: Chunk,
  ledger: Pick<LedgerChunk, 'times' | 'cells'>,
  excerpts: (string | null)[],
): Page {
  const readState = cellReader(run);
  const timeText = timeTexts();
  const endedAt = run.endedAt || Number.POSITIVE_INFINITY; // the ledger rounds its times up
  const rows = chunk.ids.map((id, i): OutcomeRow => {
    const { outcome, status, attempts, code } = readState(ledger.cells[i]!);
    const { file, line } = chunk.positions[i]!;
    const settledAt =
      outcome === 'pending'
        ? ''
        : timeText(isSettled(ledger.cells[i]!) ? Math.min(readSettledAt(ledger, i), endedAt) : run.endedAt);
    const excerpt = excerpts[i] ?? '';
    return {
      file: run.files[file]!,
      line,
      resource: chunk.resource,
      id,
      outcome,
      status,
      attempts,
      settledAt,
      code,
      excerpt,
    };
  });
  return { positions: chunk.positions, rows };
}

/** Formats times, in ms since 1970, as text. Most ids of a chunk were settled in the same few seconds, so the last text is kept and reused. */
function timeTexts(): (ms: number) => string {
  let last = { ms: 0, text: '' };
  return (ms) => {
    if (ms !== last.ms) last = { ms, text: ms > 0 ? isoSecond(ms) : '' };
    return last.text;
  };
}

/** The rows of a block; they were never sent. Pure. */
export function rowsOfBlock(run: Run, settled: SettledRow[]): Page {
  const rows = settled.map((row): OutcomeRow => {
    const { line, resource, outcome, code, first } = row;
    const excerpt = first === null ? '' : `first at ${run.files[first.file]}:${first.line}`;
    const file = run.files[row.file]!;
    return { file, line, resource, id: shownId(row), outcome, status: null, attempts: 0, settledAt: '', code, excerpt };
  });
  return { positions: settled, rows };
}

const cutFrom = 199; // rows of blocks hold at most 200 characters, 199 if the cut met a surrogate pair
const notAnId = new Set<string>([
  'lone_surrogate',
  'not_a_string',
  'unsafe_number',
  'repeated_header',
  'duplicate_key',
]);

/**
 * The id as a report shows it. A report can be used as a list, so a text that is not the id of its row must not name another object. Such text gets a
 * tab at its end, because an id with a control character is always rejected.
 */
export function shownId({ id, code }: Pick<SettledRow, 'id' | 'code'>): string {
  if (id.length >= cutFrom) return `${id}…\t`;
  return notAnId.has(code) ? `${id}\t` : id;
}
