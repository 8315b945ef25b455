import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { ExpungeError } from '../errors.ts';
import type { Chunk, Position, SettledBlock } from '../input/row.ts';
import { type Resource, resources } from './outcome.ts';

const lineFeed = '\n'.charCodeAt(0);

/**
 * A manifest chunk as bytes: `resource \n positions \n layout+ids`, compressed with zstd. Ids of one length are stored
 * column by column, so that the dashes of a UUID cost nothing and each hex digit four bits: 16 bytes an id.
 */
export function encodeChunk(chunk: Chunk): Buffer {
  const head = `${chunk.resource}\n${encodePositions(chunk.positions)}\n`;
  return compress(Buffer.concat([Buffer.from(head), encodeIds(chunk.ids)]));
}

/** The chunk as it was written. Throws INTERNAL for bytes that no `encodeChunk` wrote. */
export function decodeChunk(n: number, bytes: Buffer): Chunk {
  const { resource, positions, ids } = unpack(n, bytes);
  const where = decodePositions(positions);
  return { n, resource, ids: decodeIds(ids, where.length), positions: where };
}

/** Only what deleting needs of a chunk: half the work of `decodeChunk`. */
export function decodeIdsOfChunk(n: number, bytes: Buffer, size: number): Pick<Chunk, 'resource' | 'ids'> {
  const { resource, ids } = unpack(n, bytes);
  return { resource, ids: decodeIds(ids, size) };
}

function unpack(n: number, bytes: Buffer): { resource: Resource; positions: string; ids: Buffer } {
  const plain = zstdDecompressSync(bytes);
  const first = plain.indexOf(lineFeed);
  const second = plain.indexOf(lineFeed, first + 1);
  const resource = resources.find((word) => word === plain.toString('latin1', 0, first));
  if (!resource) throw new ExpungeError('INTERNAL', `manifest chunk ${n}: expected a resource, got other bytes`);
  return { resource, positions: plain.toString('latin1', first + 1, second), ids: plain.subarray(second + 1) };
}

/** Rows settled while reading, as bytes. */
export function encodeBlock(block: SettledBlock): Buffer {
  return compress(JSON.stringify(block.rows));
}

export function decodeBlock(n: number, bytes: Buffer): SettledBlock {
  return { n, rows: JSON.parse(zstdDecompressSync(bytes).toString('utf8')) };
}

function compress(text: string | Buffer): Buffer {
  return zstdCompressSync(text, { params: { [constants.ZSTD_c_compressionLevel]: 1 } });
}

/** `file:line` where the file changes, else the distance to the line before. */
function encodePositions(positions: Position[]): string {
  let previous: Position | null = null;
  const parts: string[] = [];
  for (const position of positions) {
    const sameFile = previous?.file === position.file;
    parts.push(sameFile ? String(position.line - previous!.line) : `${position.file}:${position.line}`);
    previous = position;
  }
  return parts.join(',');
}

function decodePositions(text: string): Position[] {
  let [file, line] = [0, 0];
  return text.split(',').map((part) => {
    const [left, right] = part.split(':');
    if (right === undefined) line += Number(left);
    else [file, line] = [Number(left), Number(right)];
    return { file, line };
  });
}

// Ids hold no control characters (guard/check-id.ts), so a line feed can separate them.
const byLine = 'l'.charCodeAt(0);
const byColumn = 'c'.charCodeAt(0);

function encodeIds(ids: string[]): Buffer {
  const length = ids[0]!.length;
  const sameLength = ids.every((id) => id.length === length && /^[!-~]+$/.test(id));
  const rows = Buffer.from(ids.join(sameLength ? '' : '\n'));
  return Buffer.concat([Buffer.of(sameLength ? byColumn : byLine), sameLength ? transpose(rows, length) : rows]);
}

function decodeIds(bytes: Buffer, count: number): string[] {
  const body = bytes.subarray(1);
  if (bytes[0] === byLine) return body.toString('utf8').split('\n');
  const length = body.length / count;
  const rows = transpose(body, count);
  return Array.from({ length: count }, (_, i) => rows.toString('latin1', i * length, (i + 1) * length));
}

/** A table of bytes, stored row by row with `width` bytes a row, turned on its side. */
function transpose(table: Buffer, width: number): Buffer {
  const height = table.length / width;
  const turned = Buffer.allocUnsafe(table.length);
  let at = 0;
  for (let column = 0; column < width; column++) {
    for (let row = 0; row < height; row++) turned[at++] = table[row * width + column]!;
  }
  return turned;
}
