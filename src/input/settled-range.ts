import { existsSync, readFileSync } from 'node:fs';
import type { Position } from '../model/row.ts';
import { placeBytes, protectedLine, rowsPerSettledFile, spoolFile } from './spool-files.ts';

/** What became of a row that can be sent; `first` is where the id of a duplicate stood first. */
export type Settled = { settled: 'duplicate' | 'protected' | null; first: Position | null };

const toSend: Settled = { settled: null, first: null };

/** The settled rows among the range of rows that is being read: flat numbers, since all of them can be duplicates. */
export class SettledRange {
  readonly #folder: string;
  readonly #isSettled = new Uint8Array(rowsPerSettledFile);
  readonly #first = new Uint32Array(2 * rowsPerSettledFile);

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** To be called for every row, in order. */
  moveTo(row: number): void {
    if (row % rowsPerSettledFile !== 0) return;
    this.#isSettled.fill(0);
    const path = spoolFile.settled(this.#folder, row / rowsPerSettledFile);
    if (existsSync(path)) this.#load(readFileSync(path));
  }

  at(row: number): Settled {
    const index = row % rowsPerSettledFile;
    if (this.#isSettled[index] === 0) return toSend;
    const line = this.#first[2 * index + 1]!;
    if (line === protectedLine) return { settled: 'protected', first: null };
    return { settled: 'duplicate', first: { file: this.#first[2 * index]!, line } };
  }

  #load(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += placeBytes) {
      const index = bytes.readUInt32LE(at) % rowsPerSettledFile;
      this.#isSettled[index] = 1;
      this.#first[2 * index] = bytes.readUInt32LE(at + 4);
      this.#first[2 * index + 1] = bytes.readUInt32LE(at + 8);
    }
  }
}
