type Step = (bytes: Buffer) => Wait;

/** The next bytes: `skip` bytes of no interest, then `read` bytes for `next`. */
type Wait = { skip: number; read: number; next: Step };

/**
 * Follows zstd data (RFC 8878) from block to block, to know whether they end at the end of a frame: Node 22 accepts data that are cut off as whole.
 */
export class ZstdFrames {
  #wait: Wait = { skip: 0, read: 4, next: readMagic };
  #held: Buffer = Buffer.alloc(0);

  /** Takes the next part of the data, of any size. */
  feed(part: Buffer): void {
    for (let at = 0; at < part.length; ) {
      const { skip, read, next } = this.#wait;
      if (skip > 0) {
        const skipped = Math.min(skip, part.length - at);
        this.#wait = { skip: skip - skipped, read, next };
        at += skipped;
        continue;
      }
      const taken = part.subarray(at, at + read - this.#held.length);
      this.#held = Buffer.concat([this.#held, taken]);
      at += taken.length;
      if (this.#held.length < read) continue;
      this.#wait = next(this.#held);
      this.#held = Buffer.alloc(0);
    }
  }

  /** Whether the data could end here. Data that are not zstd are not judged, because the decoder refuses them. */
  get isWhole(): boolean {
    const { skip, next } = this.#wait;
    return skip === Number.POSITIVE_INFINITY || (skip === 0 && this.#held.length === 0 && next === readMagic);
  }
}

const nextFrame = { read: 4, next: readMagic };

function readMagic(bytes: Buffer): Wait {
  const magic = bytes.readUInt32LE();
  if (magic === 0xfd2fb528) return { skip: 0, read: 1, next: readDescriptor };
  if (magic >>> 4 === 0x184d2a5)
    return { skip: 0, read: 4, next: (size) => ({ skip: size.readUInt32LE(), ...nextFrame }) };
  return { skip: Number.POSITIVE_INFINITY, ...nextFrame };
}

/** Reads the descriptor, which gives the length of the rest of the header, and whether a checksum ends the frame. */
function readDescriptor(bytes: Buffer): Wait {
  const descriptor = bytes.readUInt8();
  const isSingleSegment = (descriptor & 0b10_0000) !== 0;
  const windowBytes = isSingleSegment ? 0 : 1;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 0b11]!;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >>> 6]!;
  const checksumBytes = (descriptor & 0b100) === 0 ? 0 : 4;
  const skip = windowBytes + dictionaryBytes + sizeBytes;
  return { skip, read: 3, next: (block) => readBlock(block, checksumBytes) };
}

function readBlock(bytes: Buffer, checksumBytes: number): Wait {
  const header = bytes.readUIntLE(0, 3);
  const isRepeated = ((header >>> 1) & 0b11) === 1; // one byte that represents many
  const size = isRepeated ? 1 : header >>> 3;
  if ((header & 1) === 1) return { skip: size + checksumBytes, ...nextFrame };
  return { skip: size, read: 3, next: (block) => readBlock(block, checksumBytes) };
}
