import { closeSync, openSync, readSync } from 'node:fs';
import { systemCode } from '../errors.ts';

const blockSize = 256 * 1024;

/** Reads a file from its beginning in records, a block at a time. A file that does not exist is empty. */
export class BlockReader {
  readonly #file: number | null;
  #begin = 0; // of the bytes taken last
  #at = 0;
  #end = 0;
  readonly block: Buffer; // holds the bytes taken last

  /** A block can serve one reader after the other. */
  constructor(path: string, block: Buffer = Buffer.allocUnsafeSlow(blockSize)) {
    this.#file = openIfThere(path);
    this.block = block;
  }

  /** Where the next `length` bytes stand in `block`, or -1 at the end of the file. */
  take(length: number): number {
    this.#begin = this.#at;
    return this.extend(length);
  }

  /** Takes `length` bytes more to those taken last. Where all of them stand now, or -1 at the end of the file. */
  extend(length: number): number {
    if (this.#at + length > this.#end) this.#fill(this.#at - this.#begin + length);
    if (this.#at + length > this.#end) return -1;
    this.#at += length;
    return this.#begin;
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
  }

  /** Moves the bytes taken last to the beginning of the block and fills it, at least up to `least` bytes if the file has them. */
  #fill(least: number): void {
    if (this.#file === null) return;
    this.block.copyWithin(0, this.#begin, this.#end);
    this.#end -= this.#begin;
    this.#at -= this.#begin;
    this.#begin = 0;
    let read = -1;
    while (this.#end < least && read !== 0) {
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
