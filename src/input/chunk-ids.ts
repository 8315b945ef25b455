import { existsSync, readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import type { ReadOutcome } from '../model/outcome.ts';
import type { Resource } from '../model/resource.ts';
import { type Chunk, chunkSize, type Position, type Row, type SettledBlock, type SettledRow } from '../model/row.ts';
import type { ResourceNumbers } from './resource-numbers.ts';
import type { HeldBack, Spool } from './spool.ts';
import {
  BlockReader,
  cutId,
  headerBytes,
  placeBytes,
  protectedLine,
  rejectAt,
  resourceAt,
  rowsPerSettledFile,
  spoolFile,
} from './spool-files.ts';

/** The sizes of the first chunks, so that a chunk ends at each rung of a canary (cumulative numbers of ids); all later chunks are full. */
export function chunkSizes(canary: readonly number[] = [], size = chunkSize): number[] {
  const steps = canary.map((rung, i) => rung - (canary[i - 1] ?? 0));
  return steps.flatMap((ids) =>
    Array.from({ length: Math.ceil(ids / size) }, (_, n) => Math.min(size, ids - n * size)),
  );
}

/** Counts the chunks and blocks that `readChunks` yields for a spool, and the ids that the `first` chunks hold, each with those before it. */
export function countChunks(
  spool: Spool,
  first: readonly number[] = [],
): { chunks: number; blocks: number; firstIds: number[] } {
  const settled = Object.values(countSettledRows(spool)).reduce((sum, rows) => sum + rows, 0);
  const left = new Map(Object.entries(spool.ids));
  const firstIds: number[] = [];
  for (const part of first.length === 0 ? [] : readChunks(spool, first)) {
    if (!('ids' in part)) continue;
    firstIds.push((firstIds.at(-1) ?? 0) + part.ids.length);
    left.set(part.resource, left.get(part.resource)! - part.ids.length);
    if (firstIds.length === first.length) break;
  }
  const others = [...left.values()].reduce((sum, ids) => sum + Math.ceil(ids / chunkSize), 0);
  return { chunks: firstIds.length + others, blocks: Math.ceil(settled / chunkSize), firstIds };
}

/** The number of rows settled while reading, by outcome. */
export function countSettledRows({ rejected, duplicates, protected: kept }: Spool): Record<ReadOutcome, number> {
  return { rejected, duplicate: duplicates, protected: kept };
}

/** The ids of chunks that would be sent. */
export function* sendableIds(parts: Iterable<Chunk | SettledBlock>): Generator<readonly string[]> {
  for (const part of parts) if ('ids' in part) yield part.ids;
}

/**
 * The chunks and settled blocks of a spool, each kind numbered from 0. A chunk holds ids of one resource, in input order. Each is yielded when it is
 * full, partial ones last; the `first` chunks have these sizes. The same spool gives the same chunks. Reading is synchronous, so await between them.
 */
export function* readChunks(spool: Spool, first: readonly number[] = []): Generator<Chunk | SettledBlock> {
  const open = new OpenChunks(spool, first);
  for (const row of readSpool(spool)) yield* open.add(row);
  yield* open.takeAll();
}

const rowsAtOnce = 10_000; // a worker that makes a scheduled run must not block its event loop

/** The same, but lets other work proceed even while it passes over many rows that are held back. */
export async function* readTakenChunks(
  spool: Spool,
  first: readonly number[] = [],
): AsyncGenerator<Chunk | SettledBlock> {
  const open = new OpenChunks(spool, first);
  for (const { n, row, isHeldBack } of readAll(spool)) {
    if (n % rowsAtOnce === 0) await setImmediate();
    if (!isHeldBack) yield* open.add(row);
  }
  yield* open.takeAll();
}

/** A row and its result: it is to be sent if both `reject` and `settled` are null. */
export type SpooledRow = Row & Settled;

/** The rows of a spool in input order, without rows that are held back, in bounded memory. It can be read repeatedly. */
export function* readSpool(spool: Spool): Generator<SpooledRow> {
  for (const { row, isHeldBack } of readAll(spool)) if (!isHeldBack) yield row;
}

/** All rows of a spool, and which of them are held back; see `takeIds`. */
export function* readAll(spool: Spool): Generator<{ n: number; row: SpooledRow; isHeldBack: boolean }> {
  const { heldBack } = spool;
  const rows = new BlockReader(spoolFile.rows(spool.folder));
  const positions = new BlockReader(spoolFile.positions(spool.folder));
  const settled = new SettledRange(spool.folder);
  try {
    const count = spool.rows + (heldBack?.rows ?? 0);
    for (let n = 0; n < count; n++) {
      settled.moveTo(n);
      const row = readRow(rows, positions, settled.at(n), spool.resources);
      yield { n, row, isHeldBack: heldBack !== undefined && n >= heldBack.row && isBehind(row, heldBack) };
    }
  } finally {
    rows.close();
    positions.close();
  }
}

/** Whether a row after the last id that is taken is held back: it has an id to send, or repeats an id that is held back. */
function isBehind({ reject, settled, first }: SpooledRow, from: HeldBack): boolean {
  if (reject !== null || settled === 'protected') return false;
  return first === null || first.file > from.file || (first.file === from.file && first.line >= from.line);
}

const nothing: readonly (Chunk | SettledBlock)[] = [];

/** The partial chunks and block: one chunk per resource and one block. */
class OpenChunks {
  readonly #first: readonly number[];
  #chunks = 0;
  #blocks = 0;
  readonly #ids: ReadonlyMap<Resource, SpooledRow[]>;
  settled: SettledRow[] = [];

  /** `first`: the sizes of the first chunks. */
  constructor({ ids }: Spool, first: readonly number[]) {
    this.#ids = new Map(Object.keys(ids).map((resource) => [resource, []]));
    this.#first = first;
  }

  /** Adds a row, and returns the chunks and the block that it fills; mostly none. */
  add(row: SpooledRow): readonly (Chunk | SettledBlock)[] {
    if (row.reject !== null || row.settled !== null)
      return this.settled.push(toSettledRow(row)) === chunkSize ? [this.takeBlock()] : nothing;
    const resource = row.resource!;
    const ids = this.#ids.get(resource)!;
    if (ids.push(row) < this.#size) return nothing;
    const full: Chunk[] = [];
    while (ids.length >= this.#size) full.push(this.#takeChunk(resource, ids));
    return full;
  }

  /** The partial chunks and block. */
  *takeAll(): Generator<Chunk | SettledBlock> {
    for (const [resource, ids] of this.#ids) while (ids.length > 0) yield this.#takeChunk(resource, ids);
    if (this.settled.length > 0) yield this.takeBlock();
  }

  get #size(): number {
    return this.#first[this.#chunks] ?? chunkSize;
  }

  #takeChunk(resource: Resource, ids: SpooledRow[]): Chunk {
    const rows = ids.splice(0, this.#size);
    const positions = rows.map(({ file, line }) => ({ file, line }));
    return { n: this.#chunks++, resource, ids: rows.map((row) => row.id), positions };
  }

  takeBlock(): SettledBlock {
    const rows = this.settled;
    this.settled = [];
    return { n: this.#blocks++, rows };
  }
}

function toSettledRow({ file, line, resource, id, reject, settled, first }: SpooledRow): SettledRow {
  const row = { file, line, resource, id: cutId(id) };
  if (reject !== null) return { ...row, outcome: 'rejected', code: reject, first: null };
  return { ...row, outcome: settled!, code: settled!, first };
}

/** Reads a row. Written out, because a spread of its parts takes as long as reading them. */
function readRow(
  rows: BlockReader,
  positions: BlockReader,
  { settled, first }: Settled,
  resources: ResourceNumbers,
): SpooledRow {
  const { block } = rows;
  const at = rows.take(headerBytes);
  const resource = resources.nameOf(resourceAt(block, at));
  const reject = rejectAt(block, at);
  const length = block[at + 2]! | (block[at + 3]! << 8);
  const start = rows.take(length);
  const id = block.toString('utf8', start, start + length);
  const place = positions.take(8);
  const [file, line] = [positions.block.readUInt32LE(place), positions.block.readUInt32LE(place + 4)];
  return { file, line, resource, id, reject, settled, first };
}

/** Whether a valid row is settled already; `first` is the first position of a duplicate's id. */
type Settled = { settled: Exclude<ReadOutcome, 'rejected'> | null; first: Position | null };

const toSend: Settled = { settled: null, first: null };

/** The settled rows of the range that is being read, as flat numbers, because all rows can be duplicates. Most lists have none, and need no memory. */
class SettledRange {
  readonly #folder: string;
  #isSettled: Uint8Array | null = null;
  #first = new Uint32Array(0);

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Moves to a row. Call it for every row, in order. */
  moveTo(row: number): void {
    if (row % rowsPerSettledFile !== 0) return;
    const path = spoolFile.settled(this.#folder, row / rowsPerSettledFile);
    this.#isSettled = existsSync(path) ? this.#load(readFileSync(path)) : null;
  }

  at(row: number): Settled {
    const index = row % rowsPerSettledFile;
    if (this.#isSettled === null || this.#isSettled[index] === 0) return toSend;
    const line = this.#first[2 * index + 1]!;
    if (line === protectedLine) return { settled: 'protected', first: null };
    return { settled: 'duplicate', first: { file: this.#first[2 * index]!, line } };
  }

  #load(bytes: Buffer): Uint8Array {
    const isSettled = new Uint8Array(rowsPerSettledFile);
    if (this.#first.length === 0) this.#first = new Uint32Array(2 * rowsPerSettledFile);
    for (let at = 0; at < bytes.length; at += placeBytes) {
      const index = bytes.readUInt32LE(at) % rowsPerSettledFile;
      isSettled[index] = 1;
      this.#first[2 * index] = bytes.readUInt32LE(at + 4);
      this.#first[2 * index + 1] = bytes.readUInt32LE(at + 8);
    }
    return isSettled;
  }
}
