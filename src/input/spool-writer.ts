import { createHash } from 'node:crypto';
import type { Row } from '../model/row.ts';
import { BlockFile } from './block-file.ts';
import { bucketCount, bucketOf, cutId, encodeRow, placeBytes, spoolFile } from './spool-files.ts';

/** Writes the rows of one spool, in their order and to their buckets. Memory: 256 blocks of each kind of bucket. */
export class SpoolWriter {
  readonly #rows: BlockFile;
  readonly #positions: BlockFile;
  readonly #buckets: BlockFile[];
  readonly #protect: BlockFile[];
  readonly #scratch = Buffer.alloc(8192); // an id that can be sent has at most 1 KiB, others are cut
  readonly hash = createHash('sha256');
  readonly layout = createHash('sha256'); // over the positions
  rows = 0;
  rejected: Record<string, number> = {};

  constructor(folder: string) {
    const each = (path: (folder: string, n: number) => string) =>
      Array.from({ length: bucketCount }, (_, n) => new BlockFile(path(folder, n), 16 * 1024));
    this.#rows = new BlockFile(spoolFile.rows(folder), 256 * 1024, (block) => this.hash.update(block));
    this.#positions = new BlockFile(spoolFile.positions(folder), 64 * 1024, (block) => this.layout.update(block));
    this.#buckets = each(spoolFile.bucket);
    this.#protect = each(spoolFile.protect);
  }

  add(row: Row): void {
    const id = row.reject === null ? row.id : cutId(row.id);
    const length = encodeRow(this.#scratch, row.resource, row.reject, id);
    copyTo(this.#rows, this.#scratch, length);
    this.#addPosition(row);
    if (row.reject === null) this.#addToBucket(row, length);
    else this.rejected[row.reject] = (this.rejected[row.reject] ?? 0) + 1;
    this.rows += 1;
  }

  addProtected(id: string): void {
    const length = encodeRow(this.#scratch, null, null, id);
    copyTo(this.#protect[bucketOf(id)]!, this.#scratch, length);
  }

  /** Puts everything on disk. */
  flush(): void {
    for (const file of [this.#rows, this.#positions, ...this.#buckets, ...this.#protect]) file.flush();
  }

  #addPosition(row: Row): void {
    const at = this.#positions.reserve(8);
    this.#positions.block.writeUInt32LE(row.file, at);
    this.#positions.block.writeUInt32LE(row.line, at + 4);
  }

  #addToBucket(row: Row, length: number): void {
    const bucket = this.#buckets[bucketOf(row.id)]!;
    const at = bucket.reserve(placeBytes + length);
    bucket.block.writeUInt32LE(this.rows, at);
    bucket.block.writeUInt32LE(row.file, at + 4);
    bucket.block.writeUInt32LE(row.line, at + 8);
    this.#scratch.copy(bucket.block, at + placeBytes, 0, length);
  }
}

function copyTo(file: BlockFile, bytes: Buffer, length: number): void {
  const at = file.reserve(length);
  bytes.copy(file.block, at, 0, length);
}
