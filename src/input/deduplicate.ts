import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { ByteIndex } from './byte-index.ts';
import { ShapeCounter } from './count-shapes.ts';
import {
  BlockFile,
  BlockReader,
  bucketCount,
  headerBytes,
  placeBytes,
  protectedLine,
  resourceAt,
  rowsPerSettledFile,
  spoolFile,
} from './spool-files.ts';

/** An id that will be sent, the number of its row, and the number of its resource. */
export type SpooledId = { row: number; resource: number; id: string };

/** The result of deduplication. */
export type DeduplicationResult = {
  ids: Map<number, number>; // by the number of the resource
  duplicates: number;
  protected: number;
  unmatched: number; // protected ids that no row has
  first: SpooledId | null;
  last: SpooledId | null;
  shapes: ShapeCounter; // of these ids
};

/**
 * Finds duplicates and protected ids, bucket by bucket. Ids are compared byte for byte; the first line of an id is sent, unless the id is protected.
 * Memory holds the distinct ids of one bucket. Writes duplicates and protected rows to the spool's `settled` files, and removes the buckets. Calls
 * `onProtected` with the number of each protected row; the same rows give the same order.
 */
export async function deduplicate(folder: string, onProtected: (row: number) => void): Promise<DeduplicationResult> {
  const deduplicator = new Deduplicator(folder, onProtected);
  for (let n = 0; n < bucketCount; n++) await deduplicator.readBucket(n);
  deduplicator.settled.flush();
  return deduplicator.found;
}

const recordsAtOnce = 10_000; // a worker that plans a scheduled run must not block its event loop

class Deduplicator {
  readonly found: DeduplicationResult = {
    ids: new Map(),
    duplicates: 0,
    protected: 0,
    unmatched: 0,
    first: null,
    last: null,
    shapes: new ShapeCounter(),
  };
  readonly settled: SettledFiles;
  readonly #folder: string;
  readonly #written: ReadonlySet<string>; // the paths of the files of the spool: a short list has few of the 512 buckets
  readonly #onProtected: (row: number) => void;
  readonly #seen = new ByteIndex(placeBytes); // resource and id are both part of the key
  readonly #guarded = new ByteIndex(headerBytes);
  #block: Buffer | undefined;

  constructor(folder: string, onProtected: (row: number) => void) {
    this.settled = new SettledFiles(folder);
    this.#folder = folder;
    this.#written = new Set(readdirSync(folder).map((name) => join(folder, name)));
    this.#onProtected = onProtected;
  }

  async readBucket(n: number): Promise<void> {
    this.#seen.forgetAll();
    this.#guarded.forgetAll();
    await this.#readRecords(spoolFile.protect(this.#folder, n), 0, (block, start, end) => {
      if (this.#guarded.add(block, start, end) === -1) this.found.unmatched += 1;
    });
    await this.#readRecords(spoolFile.bucket(this.#folder, n), placeBytes, (block, start, end) => {
      this.#addRow(block, start, end);
    });
  }

  /** Calls `take` for each record of a file, whose header follows `before` bytes, and removes the file to free its space. */
  async #readRecords(path: string, before: number, take: (block: Buffer, start: number, end: number) => void) {
    if (!this.#written.has(path)) return;
    const reader = new BlockReader(path, this.#block);
    this.#block = reader.block;
    try {
      for (let n = 1, at = takeRecord(reader, before); at !== -1; n++, at = takeRecord(reader, before)) {
        take(reader.block, at, endOf(reader.block, at + before));
        if (n % recordsAtOnce === 0) await setImmediate();
      }
    } finally {
      reader.close();
    }
    rmSync(path);
    await setImmediate();
  }

  #addRow(block: Buffer, start: number, end: number): void {
    const guard = this.#guarded.find(block, start + placeBytes + headerBytes, end);
    if (guard === -1) this.#addId(block, start, end);
    else this.#protect(block.readUInt32LE(start), guard);
  }

  #addId(block: Buffer, start: number, end: number): void {
    const first = this.#seen.add(block, start, end);
    if (first === -1) this.#keep(block, start);
    else this.#markDuplicate(block.readUInt32LE(start), first);
  }

  /** `guard`: the place of the protected id, whose first byte, which is no part of its key, says that a row has matched it. */
  #protect(row: number, guard: number): void {
    const { records } = this.#guarded;
    if (records[guard] === 0) this.found.unmatched -= 1;
    records[guard] = 1;
    this.settled.add(row, 0, protectedLine);
    this.found.protected += 1;
    this.#onProtected(row);
  }

  #markDuplicate(row: number, first: number): void {
    const { records } = this.#seen;
    this.settled.add(row, records.readUInt32LE(first + 4), records.readUInt32LE(first + 8));
    this.found.duplicates += 1;
  }

  #keep(block: Buffer, at: number): void {
    const row = block.readUInt32LE(at);
    const { first, last, ids, shapes } = this.found;
    const start = at + placeBytes;
    const resource = resourceAt(block, start);
    shapes.add({ row, resource }, block, at + 4, start + headerBytes, endOf(block, start));
    ids.set(resource, (ids.get(resource) ?? 0) + 1);
    if (first === null || row < first.row) this.found.first = keptAt(block, at);
    if (last === null || row > last.row) this.found.last = keptAt(block, at);
  }
}

function keptAt(block: Buffer, at: number): SpooledId {
  const start = at + placeBytes;
  const id = block.toString('utf8', start + headerBytes, endOf(block, start));
  return { row: block.readUInt32LE(at), resource: resourceAt(block, start), id };
}

/** The start of the next record in the block of its reader, or -1 after the last. */
function takeRecord(reader: BlockReader, before: number): number {
  const at = reader.take(before + headerBytes);
  if (at === -1) return -1;
  const start = reader.extend(reader.block.readUInt16LE(at + before + 2));
  if (start === -1) throw new Error('a bucket of the spool ends within a record');
  return start;
}

/** The end of the record whose header begins here. */
function endOf(bytes: Buffer, at: number): number {
  return at + headerBytes + bytes.readUInt16LE(at + 2);
}

/** Writes settled rows to one file per range of rows, because they come in any order, and a reader holds one range in memory. */
class SettledFiles {
  readonly #folder: string;
  readonly #files: BlockFile[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  add(row: number, firstFile: number, firstLine: number): void {
    const file = this.#fileOf(row);
    const at = file.reserve(placeBytes);
    file.block.writeUInt32LE(row, at);
    file.block.writeUInt32LE(firstFile, at + 4);
    file.block.writeUInt32LE(firstLine, at + 8);
  }

  flush(): void {
    for (const file of this.#files) file?.flush();
  }

  #fileOf(row: number): BlockFile {
    const n = Math.floor(row / rowsPerSettledFile);
    this.#files[n] ??= new BlockFile(spoolFile.settled(this.#folder, n), 12 * 1024);
    return this.#files[n];
  }
}
