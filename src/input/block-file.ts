import { appendFileSync } from 'node:fs';

/**
 * Collects records in memory and appends them to a file a block at a time. Synchronous on purpose: a block goes to the page
 * cache in microseconds, and a row then costs no promise. Nothing is on disk before `flush`; repeating that adds nothing.
 */
export class BlockFile {
  readonly #path: string;
  readonly #size: number;
  readonly #onBlock: (block: Buffer) => void;
  #used = 0;
  block: Buffer = Buffer.alloc(0); // where the bytes reserved last are written

  constructor(path: string, size: number, onBlock: (block: Buffer) => void = () => {}) {
    this.#path = path;
    this.#size = size;
    this.#onBlock = onBlock;
  }

  /** Makes room for a record and returns where it begins in `block`. */
  reserve(length: number): number {
    if (this.block.length === 0) this.block = Buffer.allocUnsafeSlow(this.#size);
    if (this.#used + length > this.#size) this.flush();
    const at = this.#used;
    this.#used += length;
    return at;
  }

  flush(): void {
    if (this.#used === 0) return;
    const bytes = this.block.subarray(0, this.#used);
    appendFileSync(this.#path, bytes, { mode: 0o600 });
    this.#onBlock(bytes);
    this.#used = 0;
  }
}
