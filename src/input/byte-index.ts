const firstPositions = 1024;
const maxBytes = 2 ** 32 - 1; // the largest offset that a position can hold

/**
 * Stores records byte for byte, and finds the first record with a key. A Map of strings would leave more garbage for each bucket than the memory
 * limit of the whole spool. This index grows only with the distinct records, and reuses its tables.
 */
export class ByteIndex {
  readonly #keyAt: number;
  #used = 0;
  #count = 0;
  // Start and end of the record at each position; an end of 0 is an empty position. At least half of the positions are empty.
  #starts = new Uint32Array(firstPositions);
  #ends = new Uint32Array(firstPositions);
  #hashes = new Int32Array(firstPositions);
  /** The stored records, one after the other. */
  records: Buffer = Buffer.allocUnsafeSlow(64 * 1024);

  /** The key of a record begins after its first `keyAt` bytes. */
  constructor(keyAt: number) {
    this.#keyAt = keyAt;
  }

  /** Removes all records; the tables keep their size. */
  forgetAll(): void {
    this.#used = 0;
    this.#count = 0;
    this.#ends.fill(0);
  }

  /** The place in `records` of the record with these bytes as its key; -1 if there is none. */
  find(bytes: Buffer, start: number, end: number): number {
    if (this.#count === 0) return -1;
    const position = this.#positionOf(bytes, start, end, hashOf(bytes, start, end));
    return this.#ends[position] === 0 ? -1 : this.#starts[position]!;
  }

  /** Returns the place in `records` of the record with the same key. If there is none, stores this record and returns -1. Throws above 4 GiB. */
  add(bytes: Buffer, start: number, end: number): number {
    const hash = hashOf(bytes, start + this.#keyAt, end);
    const position = this.#positionOf(bytes, start + this.#keyAt, end, hash);
    if (this.#ends[position] !== 0) return this.#starts[position]!;
    this.#keep(position, bytes, start, end, hash);
    return -1;
  }

  #keep(position: number, bytes: Buffer, start: number, end: number, hash: number): void {
    const begin = this.#used;
    this.#reserve(end - start);
    bytes.copy(this.records, begin, start, end);
    this.#fillPosition(position, begin, this.#used, hash);
    this.#count += 1;
    if (2 * this.#count > this.#ends.length) this.#doublePositions();
  }

  #reserve(length: number): void {
    this.#used += length;
    if (this.#used <= this.records.length) return;
    if (this.#used > maxBytes) throw new Error('a bucket holds more than 4 GiB of ids that differ');
    const larger = Buffer.allocUnsafeSlow(2 * this.records.length);
    this.records.copy(larger);
    this.records = larger;
  }

  #doublePositions(): void {
    const [starts, ends, hashes] = [this.#starts, this.#ends, this.#hashes];
    this.#starts = new Uint32Array(2 * ends.length);
    this.#ends = new Uint32Array(2 * ends.length);
    this.#hashes = new Int32Array(2 * ends.length);
    for (const [position, end] of ends.entries()) {
      if (end !== 0)
        this.#fillPosition(this.#emptyPosition(hashes[position]!), starts[position]!, end, hashes[position]!);
    }
  }

  #fillPosition(position: number, start: number, end: number, hash: number): void {
    this.#starts[position] = start;
    this.#ends[position] = end;
    this.#hashes[position] = hash;
  }

  #emptyPosition(hash: number): number {
    let position = hash & (this.#ends.length - 1);
    while (this.#ends[position] !== 0) position = (position + 1) & (this.#ends.length - 1);
    return position;
  }

  /** The position of the equal key, or the empty position where it would go. */
  #positionOf(bytes: Buffer, start: number, end: number, hash: number): number {
    const mask = this.#ends.length - 1;
    let position = hash & mask;
    while (this.#ends[position] !== 0 && !this.#isEqual(position, bytes, start, end, hash))
      position = (position + 1) & mask;
    return position;
  }

  #isEqual(position: number, bytes: Buffer, start: number, end: number, hash: number): boolean {
    if (this.#hashes[position] !== hash) return false;
    return bytes.compare(this.records, this.#starts[position]! + this.#keyAt, this.#ends[position], start, end) === 0;
  }
}

/** A hash of four bytes at a time, mixed after each step, since neighbouring ids differ only in their last bytes. */
function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = end - start;
  let at = start;
  for (; at + 4 <= end; at += 4) {
    const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    hash = mix(hash ^ word);
  }
  for (; at < end; at++) hash = mix(hash ^ bytes[at]!);
  return hash;
}

function mix(hash: number): number {
  const product = Math.imul(hash, 0x9e3779b1);
  return product ^ (product >>> 15);
}
