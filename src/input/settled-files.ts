import { BlockFile } from './block-file.ts';
import { placeBytes, rowsPerSettledFile, spoolFile } from './spool-files.ts';

/** Writes which rows were settled, by ranges of rows: they come in any order, and a reader needs one range in memory. */
export class SettledFiles {
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
