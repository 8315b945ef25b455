import { closeSync, fstatSync, readSync, rmSync } from 'node:fs';
import { openIfThere } from './block-reader.ts';

/** Reads whole files into the same memory, one after the other: what was read before is gone. */
export class FileTaker {
  #room: Buffer = Buffer.alloc(0);

  /** The content of a file, which is then removed for its space. A file that does not exist is empty. */
  take(path: string): Buffer {
    const file = openIfThere(path);
    if (file === null) return this.#room.subarray(0, 0);
    try {
      return this.#read(file, fstatSync(file).size);
    } finally {
      closeSync(file);
      rmSync(path);
    }
  }

  #read(file: number, size: number): Buffer {
    // Buckets are of nearly the same size: with some room to spare the first allocation is the only one.
    if (size > this.#room.length) this.#room = Buffer.allocUnsafeSlow(Math.ceil(size * 1.25));
    const length = readSync(file, this.#room, 0, size, 0);
    if (length < size) throw new Error(`expected ${size} bytes of a bucket, got ${length}`);
    return this.#room.subarray(0, size);
  }
}
