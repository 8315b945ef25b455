import { appendFileSync, closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type RejectCode, rejectCodes } from '../model/row.ts';
import { systemCode } from '../system-errors.ts';

// A spool is a folder with:
//   rows          per row: number of the resource, reject, length of the id (header below), the id; hashed, it names the list
//   positions     per row: file, line
//   bucket-<nn>   per row that can be sent, by hash of its id: number of the row, file, line, then as in `rows`
//   protect-<nn>  per protected id, by the same hash: as in `rows`; both kinds are removed once their bucket is deduplicated
//   settled-<n>   per duplicate or protected row among the nth 262,144 rows: number of the row, first file, first line
export const spoolFile = {
  rows: (folder: string) => join(folder, 'rows'),
  positions: (folder: string) => join(folder, 'positions'),
  bucket: (folder: string, n: number) => join(folder, `bucket-${n}`),
  protect: (folder: string, n: number) => join(folder, `protect-${n}`),
  settled: (folder: string, n: number) => join(folder, `settled-${n}`),
} as const;

export const bucketCount = 256;
export const rowsPerSettledFile = 2 ** 18;
export const headerBytes = 4;
export const placeBytes = 12; // number of the row, file, line
/** The first line of a protected row: real lines count from 1. */
export const protectedLine = 0;

/** The maximum number of bytes of a row: an id that can be sent has at most 1 KiB, other ids are cut. */
export const maxRowBytes = 8192;

/**
 * Writes a row, in the form of `rows`, into a block with room for `maxRowBytes`, and returns its length. `resource`: its number, see
 * `ResourceNumbers`. Throws for an id that does not fit.
 */
export function encodeRow(into: Buffer, at: number, resource: number, reject: RejectCode | null, id: string): number {
  const length = into.write(id, at + headerBytes, maxRowBytes - headerBytes);
  if (length > maxRowBytes - headerBytes - 4) throw new Error('a row does not fit: its id would be cut'); // 4: one character
  into[at] = resource;
  into[at + 1] = reject === null ? 0 : rejectCodes.indexOf(reject) + 1;
  into[at + 2] = length & 0xff;
  into[at + 3] = length >>> 8;
  return headerBytes + length;
}

/** The number of the resource of a row; 0 = none. */
export function resourceAt(bytes: Buffer, at: number): number {
  return bytes[at]!;
}

export function rejectAt(bytes: Buffer, at: number): RejectCode | null {
  return rejectCodes[bytes[at + 1]! - 1] ?? null;
}

/**
 * The bucket of an id, whose bytes in UTF-8 are in `bytes`. It is the same for every resource, since a protected id protects all of them. The bytes
 * of ASCII are its characters, which are faster to read. The order of protected rows is part of what identifies a list, and follows from this.
 */
export function chooseBucket(id: string, bytes: Buffer, start: number, end: number): number {
  let hash = id.length;
  if (end - start === id.length) for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + bytes[at]!) | 0;
  else for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) | 0;
  return Math.imul(hash, 0x9e3779b1) >>> 24;
}

/** An id cut to 200 characters, for rows that are never sent; never in the middle of a character. */
export function cutId(id: string): string {
  return id.length <= 200 ? id : id.slice(0, 200).replace(/[\ud800-\udbff]$/, '');
}

/**
 * Collects records in memory and appends them to a file a block at a time. It is synchronous on purpose: a block reaches the page cache in
 * microseconds, and a row costs no promise. Nothing is on disk before `flush`; repeating that adds nothing.
 */
export class BlockFile {
  readonly #path: string;
  readonly #size: number;
  readonly #onBlock: (block: Buffer) => void;
  #used = 0;
  block: Buffer = Buffer.alloc(0); // the place for the last reserved bytes

  constructor(path: string, size: number, onBlock: (block: Buffer) => void = () => {}) {
    this.#path = path;
    this.#size = size;
    this.#onBlock = onBlock;
  }

  /** Makes room for a record and returns its start in `block`. */
  reserve(length: number): number {
    const at = this.room(length);
    this.#used += length;
    return at;
  }

  /** Makes room for a record of at most this length, which `add` adds, and returns its start in `block`. */
  room(maxLength: number): number {
    if (this.block.length === 0) this.block = Buffer.allocUnsafeSlow(this.#size);
    if (this.#used + maxLength > this.#size) this.flush();
    return this.#used;
  }

  /** Adds the record that was written into the room. */
  add(length: number): void {
    this.#used += length;
  }

  flush(): void {
    if (this.#used === 0) return;
    const bytes = this.block.subarray(0, this.#used);
    appendFileSync(this.#path, bytes, { mode: 0o600 });
    this.#onBlock(bytes);
    this.#used = 0;
  }
}

const blockSize = 256 * 1024;

/** Reads a file from its beginning in records, a block at a time. A file that does not exist is empty. */
export class BlockReader {
  readonly #file: number | null;
  #begin = 0; // of the last taken bytes
  #at = 0;
  #end = 0;
  readonly block: Buffer; // holds the last taken bytes

  /** `block` can be reused by the next reader. */
  constructor(path: string, block: Buffer = Buffer.allocUnsafeSlow(blockSize)) {
    this.#file = openIfThere(path);
    this.block = block;
  }

  /** Returns the start of the next `length` bytes in `block`, or -1 at the end of the file. */
  take(length: number): number {
    this.#begin = this.#at;
    return this.extend(length);
  }

  /** Takes `length` more bytes after the last taken ones. Returns the start of all of them, or -1 at the end of the file. */
  extend(length: number): number {
    if (this.#at + length > this.#end) this.#fill(this.#at - this.#begin + length);
    if (this.#at + length > this.#end) return -1;
    this.#at += length;
    return this.#begin;
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
  }

  /** Moves the last taken bytes to the beginning of the block and fills it, at least up to `minBytes` bytes if the file has them. */
  #fill(minBytes: number): void {
    if (this.#file === null) return;
    this.block.copyWithin(0, this.#begin, this.#end);
    this.#end -= this.#begin;
    this.#at -= this.#begin;
    this.#begin = 0;
    let read = -1;
    while (this.#end < minBytes && read !== 0) {
      read = readSync(this.#file, this.block, this.#end, this.block.length - this.#end, null);
      this.#end += read;
    }
  }
}

/** The descriptor of a file, or null if it does not exist. */
function openIfThere(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
}
