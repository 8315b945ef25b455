type Step = (bytes: Buffer) => Wait;

/** What comes next: so many bytes of no interest, then so many that `next` reads. */
type Wait = { skip: number; read: number; next: Step };

/** Follows zstd data (RFC 8878) from block to block, to know whether they end where a frame does: Node 22 takes data that are cut off for whole. */
export class ZstdFrames {
  #wait: Wait = { skip: 0, read: 4, next: readMagic };
  #held: Buffer = Buffer.alloc(0);

  /** The next part of the data, of any size. */
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

  /** Whether the data could end here. What is no zstd is not judged: the decoder refuses it. */
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

/** It tells how long the rest of the header is, and whether a checksum ends the frame. */
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
  const isRepeated = ((header >>> 1) & 0b11) === 1; // one byte that stands for many
  const size = isRepeated ? 1 : header >>> 3;
  if ((header & 1) === 1) return { skip: size + checksumBytes, ...nextFrame };
  return { skip: size, read: 3, next: (block) => readBlock(block, checksumBytes) };
}
