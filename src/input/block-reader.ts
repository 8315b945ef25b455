import { closeSync, openSync, readSync } from 'node:fs';
import { systemCode } from '../errors.ts';

const blockSize = 256 * 1024;

/** Reads a file from its beginning in records, a block at a time. A file that does not exist is empty. */
export class BlockReader {
  readonly #file: number | null;
  #end = 0;
  #at = 0;
  readonly block = Buffer.allocUnsafeSlow(blockSize); // holds the bytes taken last

  constructor(path: string) {
    this.#file = openIfThere(path);
  }

  /** Where the next `length` bytes stand in `block`, or -1 at the end of the file. */
  take(length: number): number {
    if (this.#at + length > this.#end) this.#fill();
    if (this.#at + length > this.#end) return -1;
    this.#at += length;
    return this.#at - length;
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
  }

  #fill(): void {
    if (this.#file === null) return;
    this.block.copyWithin(0, this.#at, this.#end);
    this.#end -= this.#at;
    this.#at = 0;
    this.#end += readSync(this.#file, this.block, this.#end, blockSize - this.#end, null);
  }
}

/** The descriptor of a file, or null if it does not exist. */
export function openIfThere(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw error;
  }
}
