import { createHash } from 'node:crypto';
import { ExpungeError } from '../errors.ts';

/**
 * The rows of a run that were written. Chunks and blocks are written as wholes, so a run of 10 million ids needs 20,000 bits. `chunk` is the chunk
 * that is being written, null for a block or for corrections; `rows` of that part are written already.
 */
export type FollowCursor = {
  blocks: number; // blocks of rows settled while reading, counted from the first
  corrections: number; // entries of the list of improved outcomes that were handled
  chunk: number | null;
  rows: number;
  written: Uint8Array; // by chunk: 1 = written as a whole
};

export function firstCursor(chunks: number): FollowCursor {
  return { blocks: 0, corrections: 0, chunk: null, rows: 0, written: new Uint8Array(chunks) };
}

const version = 1;
const tagBytes = 4;
const runLengths = 0;
const bitmap = 1;

/** Encodes the cursor of one run as text: letters, digits, `-` and `_`. */
export function encodeCursor(run: string, { blocks, corrections, chunk, rows, written }: FollowCursor): string {
  const numbers = [blocks, corrections, chunk === null ? 0 : chunk + 1, rows].flatMap(varint);
  const lengths = lengthsOf(written).flatMap(varint);
  const bits = bitsOf(written);
  const set = lengths.length <= bits.length ? [runLengths, ...lengths] : [bitmap, ...bits];
  return Buffer.from([version, ...tagOf(run), ...numbers, ...set]).toString('base64url');
}

/** Decodes a text that `encodeCursor` wrote, or one with `+N`: N further rows were written. Throws USAGE for any other text. */
export function decodeCursor(run: string, chunks: number, text: string): FollowCursor {
  const [, encoded, more = '0'] = /^([\w-]+)(?:\+(\d{1,15}))?$/.exec(text) ?? [];
  const bytes = Buffer.from(encoded ?? '', 'base64url');
  if (bytes.length < 1 + tagBytes || bytes[0] !== version || bytes.toString('base64url') !== encoded)
    throw invalid('expected a cursor as --follow prints it');
  if (!tagOf(run).equals(bytes.subarray(1, 1 + tagBytes))) throw invalid(`it does not belong to run ${run}`);
  const reader = { bytes, at: 1 + tagBytes };
  const [blocks, corrections, chunk, rows] = [
    readVarint(reader),
    readVarint(reader),
    readVarint(reader),
    readVarint(reader),
  ];
  const written = readSet(reader, chunks);
  if (chunk > chunks || (chunk > 0 && written[chunk - 1] === 1)) throw invalid('it is damaged');
  return { blocks, corrections, chunk: chunk === 0 ? null : chunk - 1, rows: rows + Number(more), written };
}

function invalid(why: string): ExpungeError {
  return new ExpungeError('USAGE', `--from: ${why}`, {
    next: 'give the last cursor that was printed, with + and the number of rows after it; or omit --from to start from the beginning',
  });
}

/** A tag of the run, so that a cursor of another run is refused. */
function tagOf(run: string): Buffer {
  return createHash('sha256').update(run).digest().subarray(0, tagBytes);
}

/** The lengths of written and unwritten stretches, in turn, up to the last chunk that is written. */
function lengthsOf(written: Uint8Array): number[] {
  const lengths: number[] = [];
  for (let from = 0, isWritten = 1; from <= written.lastIndexOf(1); isWritten = 1 - isWritten) {
    const end = written.indexOf(1 - isWritten, from);
    lengths.push((end === -1 ? written.length : end) - from);
    from = end === -1 ? written.length : end;
  }
  return lengths;
}

function bitsOf(written: Uint8Array): number[] {
  const bits = new Array<number>(Math.ceil((written.lastIndexOf(1) + 1) / 8)).fill(0);
  for (const [n, bit] of written.entries()) if (bit === 1) bits[n >> 3]! |= 1 << (n & 7);
  return bits;
}

type Reader = { bytes: Buffer; at: number };

function readSet(reader: Reader, chunks: number): Uint8Array {
  const written = new Uint8Array(chunks);
  const kind = reader.bytes[reader.at++];
  if (kind === bitmap) {
    const bits = reader.bytes.subarray(reader.at);
    for (let n = 0; n < 8 * bits.length; n++) if ((bits[n >> 3]! >> (n & 7)) & 1) setTo(written, n, n + 1);
    return written;
  }
  if (kind !== runLengths) throw invalid('it is damaged');
  for (let from = 0, isWritten = true; reader.at < reader.bytes.length; isWritten = !isWritten) {
    const end = from + readVarint(reader);
    if (isWritten) setTo(written, from, end);
    from = end;
  }
  return written;
}

function setTo(written: Uint8Array, from: number, end: number): void {
  if (end > written.length) throw invalid('it is damaged');
  written.fill(1, from, end);
}

function varint(number: number): number[] {
  const bytes: number[] = [];
  for (let left = number; ; left = Math.floor(left / 128)) {
    if (left < 128) return [...bytes, left];
    bytes.push((left % 128) + 128);
  }
}

function readVarint(reader: Reader): number {
  let number = 0;
  for (let factor = 1; factor < 2 ** 53; factor *= 128) {
    const byte = reader.bytes[reader.at++];
    if (byte === undefined) break;
    number += (byte & 127) * factor;
    if (byte < 128) return number;
  }
  throw invalid('it is damaged');
}
