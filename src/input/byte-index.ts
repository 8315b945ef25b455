/**
 * Finds equal stretches of bytes within one buffer. A Map of strings would do the same, but leaves more garbage a bucket than
 * the whole spool may have memory; this one reuses its tables.
 */
export class ByteIndex {
  #keys: Buffer = Buffer.alloc(0);
  #mask = 0;
  // Per slot; an end of 0 is an empty slot.
  #starts = new Uint32Array(0);
  #ends = new Uint32Array(0);
  #hashes = new Uint32Array(0);

  /** Forgets everything; keys added from now on are stretches of this buffer, at most so many. */
  reset(keys: Buffer, most: number): void {
    this.#keys = keys;
    const slots = 2 ** Math.ceil(Math.log2(2 * most + 2));
    if (slots > this.#ends.length) {
      this.#starts = new Uint32Array(slots);
      this.#ends = new Uint32Array(slots);
      this.#hashes = new Uint32Array(slots);
    }
    this.#mask = slots - 1;
    this.#ends.fill(0, 0, slots);
  }

  /** Whether a key has these bytes, which may stand in another buffer. */
  has(bytes: Buffer, start: number, end: number): boolean {
    return this.#ends[this.#slotOf(bytes, start, end, hashOf(bytes, start, end))] !== 0;
  }

  /** Where the first key with the bytes of this one begins: at its own start if it is new. */
  add(start: number, end: number): number {
    const hash = hashOf(this.#keys, start, end);
    const slot = this.#slotOf(this.#keys, start, end, hash);
    if (this.#ends[slot] !== 0) return this.#starts[slot]!;
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    this.#hashes[slot] = hash;
    return start;
  }

  /** The slot of the equal key, or the empty one where it would go. At least half of the slots are empty. */
  #slotOf(bytes: Buffer, start: number, end: number, hash: number): number {
    let slot = hash & this.#mask;
    while (this.#ends[slot] !== 0 && !this.#isEqual(slot, bytes, start, end, hash)) slot = (slot + 1) & this.#mask;
    return slot;
  }

  #isEqual(slot: number, bytes: Buffer, start: number, end: number, hash: number): boolean {
    if (this.#hashes[slot] !== hash) return false;
    return bytes.compare(this.#keys, this.#starts[slot], this.#ends[slot], start, end) === 0;
  }
}

/** FNV-1a with a last mix, since neighbouring ids differ in their last bytes only. */
function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}
