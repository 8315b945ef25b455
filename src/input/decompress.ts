import { pipeline, Readable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { megabytes } from '../format.ts';
import { systemCode } from '../system-errors.ts';
import { adviceToUnpack } from './convert-advice.ts';
import { headBytes, refuseForeignFormat } from './foreign-format.ts';
import { inputError } from './input-error.ts';
import { ZstdFrames } from './zstd-frames.ts';

type Packing = 'gzip' | 'zstd';

/** The size limits for an uploaded list, in bytes: as it comes, and unpacked. */
export type Size = { packed: number; maxUnpackedBytes: number };

/**
 * Decompresses gzip and zstd, which it detects by the first bytes and never by a name; other data passes unchanged. Throws USAGE for data that is
 * damaged or cut off, for formats that are not a list, packed or not, and for packed data that exceeds `size`.
 */
export async function* decompress(name: string, chunks: AsyncIterable<Buffer>, size?: Size): AsyncGenerator<Buffer> {
  const { head, all } = await peek(
    checkHead(chunks, (begin) => refuseForeignFormat(name, begin, null)),
    headBytes,
  );
  const packing = packingOf(head);
  if (packing === null) yield* all;
  else yield* checkHead(unpackWithin(name, packing, all, size), (begin) => refuseForeignFormat(name, begin, packing));
}

async function* unpackWithin(name: string, packing: Packing, packed: AsyncIterable<Buffer>, size?: Size) {
  let bytes = 0;
  for await (const chunk of unpack(name, packing, packed)) {
    bytes += chunk.length;
    if (size !== undefined && bytes > size.maxUnpackedBytes) throw tooLong(name, packing, size);
    yield chunk;
  }
}

function tooLong(name: string, packing: Packing, { packed, maxUnpackedBytes }: Size): Error {
  const message = `unpacks to more than ${megabytes(maxUnpackedBytes)}, the most that a packed list of ${megabytes(packed)} may have; nothing was sent`;
  return inputError(name, null, message, adviceToUnpack(name, packing));
}

/** Calls `check` with the first bytes. If it throws, the source is closed, which may be a process or a connection. */
async function* checkHead(chunks: AsyncIterable<Buffer>, check: (head: Buffer) => void): AsyncGenerator<Buffer> {
  let head: Buffer | null = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (head === null) yield chunk;
    else head = Buffer.concat([head, chunk]);
    if (head === null || head.length < headBytes) continue;
    check(head);
    yield head;
    head = null;
  }
  if (head === null) return;
  check(head);
  yield head;
}

/** Reads until at least `length` bytes are there, or the end; `all` is the whole input, the head included. */
export async function peek(
  chunks: AsyncIterable<Buffer>,
  length: number,
): Promise<{ head: Buffer; all: AsyncGenerator<Buffer> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  while (head.length < length) {
    const { value, done } = await iterator.next();
    if (done) break;
    head = head.length === 0 ? value : Buffer.concat([head, value]);
  }
  return { head, all: resume(head, iterator) };
}

function packingOf(head: Buffer): Packing | null {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip';
  if (head.subarray(0, 4).equals(Buffer.of(0x28, 0xb5, 0x2f, 0xfd))) return 'zstd';
  // Parallel zstd writes a skippable frame first.
  if (((head[0] ?? 0) & 0xf0) === 0x50 && head.subarray(1, 4).equals(Buffer.of(0x2a, 0x4d, 0x18))) return 'zstd';
  return null;
}

async function* unpack(name: string, packing: Packing, packed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder =
    packing === 'gzip' ? createGunzip({ chunkSize: 65_536 }) : createZstdDecompress({ chunkSize: 65_536 });
  let fed = 0;
  const frames = new ZstdFrames();
  const note = (chunk: Buffer) => {
    fed += chunk.length;
    if (packing === 'zstd') frames.feed(chunk);
  };
  const source = Readable.from(noting(packed, note));
  try {
    // The callback is required; errors of the source arrive through the decoder.
    yield* pipeline(source, decoder, () => {}) as AsyncIterable<Buffer>;
  } catch (error) {
    throw damaged(name, packing, error);
  }
  // Node stops silently after the first of several zstd frames, and the rows after it would be lost.
  if (decoder.bytesWritten < fed) throw severalFrames(name, packing);
  if (packing === 'zstd' && !frames.isWhole) throw unusable(name, packing, 'cut off');
}

async function* noting(chunks: AsyncIterable<Buffer>, note: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    note(chunk);
    yield chunk;
  }
}

function damaged(name: string, packing: Packing, error: unknown): unknown {
  if (!/^(Z_|ZSTD_)/.test(systemCode(error))) return error;
  return unusable(name, packing, systemCode(error) === 'Z_BUF_ERROR' ? 'cut off' : 'damaged');
}

function unusable(name: string, packing: Packing, how: string): Error {
  return inputError(name, null, `the ${packing} data is ${how}`, 'transfer the file again');
}

function severalFrames(name: string, packing: Packing): Error {
  const message = `something follows the first ${packing} frame, which expunge cannot unpack`;
  return inputError(name, null, message, adviceToUnpack(name, packing));
}

/** The rest of a reader's data: `head`, then its further chunks. Leaving the loop early closes them. */
export async function* resume(head: Buffer, iterator: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    if (head.length > 0) yield head;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  } finally {
    await iterator.return?.();
  }
}
