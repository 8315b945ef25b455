import { setImmediate } from 'node:timers/promises';
import type { Resource } from '../ledger/outcome.ts';
import { ByteIndex } from './byte-index.ts';
import { FileTaker } from './file-taker.ts';
import { SettledFiles } from './settled-files.ts';
import { bucketCount, headerBytes, placeBytes, protectedLine, resourceAt, spoolFile } from './spool-layout.ts';

/** An id that will be sent, and the number of its row. */
export type Kept = { row: number; resource: Resource; id: string };

/** What the buckets of a spool hold. */
export type Settlement = {
  ids: Record<Resource, number>;
  duplicates: number;
  protected: number;
  first: Kept | null;
  last: Kept | null;
};

/**
 * Tells duplicates and protected ids from those to send, one bucket in memory at a time: exact bytes, the first line wins,
 * protection wins over both. Writes them to the spool's `settled` files and removes the buckets.
 * `onProtected` hears the numbers of the protected rows: for the same rows in the same order.
 */
export async function settleBuckets(folder: string, onProtected: (row: number) => void): Promise<Settlement> {
  const settler = new Settler(folder, onProtected);
  const buckets = new FileTaker();
  const guarded = new FileTaker();
  for (let n = 0; n < bucketCount; n++) {
    settler.settle(buckets.take(spoolFile.bucket(folder, n)), guarded.take(spoolFile.protect(folder, n)));
    await setImmediate(); // a worker that plans a scheduled run has other things to do
  }
  settler.settled.flush();
  return settler.found;
}

class Settler {
  readonly found: Settlement = {
    ids: { annotations: 0, views: 0 },
    duplicates: 0,
    protected: 0,
    first: null,
    last: null,
  };
  readonly settled: SettledFiles;
  readonly #onProtected: (row: number) => void;
  readonly #seen = new ByteIndex();
  readonly #guarded = new ByteIndex();

  constructor(folder: string, onProtected: (row: number) => void) {
    this.settled = new SettledFiles(folder);
    this.#onProtected = onProtected;
  }

  settle(bucket: Buffer, guarded: Buffer): void {
    this.#guarded.reset(guarded, countRecords(guarded, 0));
    for (let at = 0; at < guarded.length; at = endOf(guarded, at)) {
      this.#guarded.add(at + headerBytes, endOf(guarded, at));
    }
    this.#seen.reset(bucket, countRecords(bucket, placeBytes));
    for (let at = 0; at < bucket.length; at = endOf(bucket, at + placeBytes)) this.#settleRow(bucket, at);
  }

  #settleRow(bucket: Buffer, at: number): void {
    const start = at + placeBytes;
    const end = endOf(bucket, start);
    if (this.#guarded.has(bucket, start + headerBytes, end)) this.#protect(bucket.readUInt32LE(at));
    else this.#settleId(bucket, at, start, end);
  }

  #settleId(bucket: Buffer, at: number, start: number, end: number): void {
    const first = this.#seen.add(start, end); // resource and id are both part of the record
    if (first === start) this.#keep(bucket, at);
    else this.#markDuplicate(bucket, at, first - placeBytes);
  }

  #protect(row: number): void {
    this.settled.add(row, 0, protectedLine);
    this.found.protected += 1;
    this.#onProtected(row);
  }

  #markDuplicate(bucket: Buffer, at: number, first: number): void {
    this.settled.add(bucket.readUInt32LE(at), bucket.readUInt32LE(first + 4), bucket.readUInt32LE(first + 8));
    this.found.duplicates += 1;
  }

  #keep(bucket: Buffer, at: number): void {
    const row = bucket.readUInt32LE(at);
    const { first, last, ids } = this.found;
    ids[resourceAt(bucket, at + placeBytes)!] += 1;
    if (first === null || row < first.row) this.found.first = keptAt(bucket, at);
    if (last === null || row > last.row) this.found.last = keptAt(bucket, at);
  }
}

function keptAt(bucket: Buffer, at: number): Kept {
  const start = at + placeBytes;
  const id = bucket.toString('utf8', start + headerBytes, endOf(bucket, start));
  return { row: bucket.readUInt32LE(at), resource: resourceAt(bucket, start)!, id };
}

/** Where the record that begins here, as in `rows`, ends. */
function endOf(bytes: Buffer, at: number): number {
  return at + headerBytes + bytes.readUInt16LE(at + 2);
}

function countRecords(bytes: Buffer, before: number): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at = endOf(bytes, at + before)) count += 1;
  return count;
}
