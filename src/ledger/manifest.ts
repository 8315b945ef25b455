import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { ExpungeError } from '../errors.ts';
import { hasExcerpt } from '../model/outcome.ts';
import { isResourceName, type Resource } from '../model/resource.ts';
import type { Chunk, Position, SettledBlock } from '../model/row.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type Cell, emptyLedgerChunk, readCell } from './cell.ts';

/**
 * Encodes a manifest chunk as bytes: `resource \n positions \n layout+ids`, compressed with zstd. Ids of equal length are stored column by column, so
 * that the dashes of a UUID cost nothing and each hex digit four bits: 16 bytes per id.
 */
export function encodeChunk(chunk: Chunk): Buffer {
  const head = `${chunk.resource}\n${encodePositions(chunk.positions)}\n`;
  const columns = columnsBehind(head + byColumn, chunk.ids);
  return compress(columns ?? `${head}${byLine}${chunk.ids.join('\n')}`);
}

/** Decodes a chunk. Throws INTERNAL for bytes that no `encodeChunk` wrote. */
export function decodeChunk(n: number, bytes: Buffer): Chunk {
  const { resource, positions, ids } = unpack(n, bytes);
  const where = decodePositions(positions);
  const idAt = idReader(ids, where.length);
  return { n, resource, ids: where.map((_, index) => idAt(index)), positions: where };
}

/** The ids of a chunk. Each is decoded when it is read, because deleting needs it only for a moment. */
export type ChunkIds = { resource: Resource; idAt(index: number): string };

/** Decodes the parts of a chunk that deleting needs: its resource and its `size` ids. Throws INTERNAL for other bytes, or another number of ids. */
export function decodeIdsOfChunk(n: number, bytes: Buffer, size: number): ChunkIds {
  const { resource, positions, ids } = unpack(n, bytes);
  const count = countPositions(positions);
  if (count !== size) throw damaged(n, `${size} ids, as the ledger has`, `${count}`);
  return { resource, idAt: idReader(ids, size) };
}

/** The index of an id in a chunk, or -1. */
export function indexOfId(n: number, bytes: Buffer, resource: Resource, id: string): number {
  const chunk = unpack(n, bytes);
  if (chunk.resource !== resource) return -1;
  if (chunk.ids.toString('latin1', 0, 1) === byLine) return chunk.ids.toString('utf8', 1).split('\n').indexOf(id);
  return indexInColumns(chunk.ids.subarray(1), countPositions(chunk.positions), Buffer.from(id));
}

/** Finds an id. Neighbouring ids differ in their last bytes, so it compares these first. */
function indexInColumns(columns: Buffer, count: number, id: Buffer): number {
  if (id.length * count !== columns.length) return -1;
  for (let index = 0; index < count; index++) {
    let column = id.length - 1;
    while (column >= 0 && columns[column * count + index] === id[column]) column--;
    if (column < 0) return index;
  }
  return -1;
}

const lineFeed = '\n'.charCodeAt(0);

function damaged(n: number, expected: string, got: string): ExpungeError {
  return new ExpungeError('INTERNAL', `manifest chunk ${n}: expected ${expected}, got ${got}`);
}

function countPositions(text: string): number {
  let count = 1;
  for (let at = text.indexOf(','); at !== -1; at = text.indexOf(',', at + 1)) count++;
  return count;
}

function unpack(n: number, bytes: Buffer): { resource: Resource; positions: string; ids: Buffer } {
  const plain = decompress(n, bytes);
  const first = plain.indexOf(lineFeed);
  const second = plain.indexOf(lineFeed, first + 1);
  const resource = plain.toString('latin1', 0, first);
  if (first === -1 || !isResourceName(resource)) throw damaged(n, 'a resource', 'other bytes');
  return { resource, positions: plain.toString('latin1', first + 1, second), ids: plain.subarray(second + 1) };
}

/** Rows settled while reading, as bytes. */
export function encodeBlock(block: SettledBlock): Buffer {
  return compress(JSON.stringify(block.rows));
}

/** Decodes a block. */
export function decodeBlock(n: number, bytes: Buffer): SettledBlock {
  return { n, rows: JSON.parse(zstdDecompressSync(bytes).toString('utf8')) };
}

function decompress(n: number, bytes: Buffer): Buffer {
  try {
    return zstdDecompressSync(bytes, { chunkSize: usualBytes });
  } catch {
    throw damaged(n, 'zstd', 'other bytes');
  }
}

function compress(text: string | Buffer): Buffer {
  return zstdCompressSync(text, { params: { [constants.ZSTD_c_compressionLevel]: 1 } });
}

/** Encodes positions: `file:line` if the file changes, otherwise the distance to the previous line. */
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

// Ids hold no control characters (model/check-id.ts), so a line feed can separate them.
const byLine = 'l';
const byColumn = 'c';

const usualBytes = 32 * 1024;
const scratch = { rows: Buffer.alloc(usualBytes), columns: Buffer.alloc(usualBytes) }; // reused: a list of millions allocates nothing here

/** The characters of the ids column by column, or null if the ids differ in length or are not all printable ASCII. */
function columnsBehind(head: string, ids: string[]): Buffer | null {
  const { length } = ids[0]!;
  const text = ids.join('');
  if (ids.some((id) => id.length !== length) || !/^[!-~]+$/.test(text)) return null;
  const size = head.length + text.length;
  if (scratch.rows.length < size) Object.assign(scratch, { rows: Buffer.alloc(size), columns: Buffer.alloc(size) });
  const { rows, columns } = scratch;
  rows.write(text, 'latin1');
  let at = columns.write(head, 'latin1');
  for (let column = 0; column < length; column++) {
    for (let from = column; from < text.length; from += length) columns[at++] = rows[from]!;
  }
  return columns.subarray(0, size);
}

function idReader(bytes: Buffer, count: number): ChunkIds['idAt'] {
  const body = bytes.subarray(1);
  if (bytes.toString('latin1', 0, 1) === byLine) {
    const ids = body.toString('utf8').split('\n');
    return (index) => ids[index]!;
  }
  const id = Buffer.alloc(body.length / count);
  return (index) => {
    for (let column = 0; column < id.length; column++) id[column] = body[column * count + index]!;
    return id.toString('latin1');
  };
}

/**
 * Writes a manifest chunk with its untouched ledger chunk, or a block of rows settled while reading, if the run is being prepared with this layout.
 * Returns whether it was written. Repeating it is harmless, even for a producer that was suspended while another producer finished planning or took
 * over with another layout: then nothing is written.
 */
export async function writePart(
  redis: RedisClient,
  run: string,
  layout: string,
  part: Chunk | SettledBlock,
): Promise<boolean> {
  const values = 'ids' in part ? chunkValues(run, part) : [[keys.settled(run, part.n), encodeBlock(part)] as const];
  const names = [keys.run(run), ...values.map(([key]) => key)];
  const written = await redis.eval(writePartLua, names.length, ...names, layout, ...values.map(([, bytes]) => bytes));
  return written === 1;
}

function chunkValues(run: string, { n, ids, ...chunk }: Chunk) {
  const manifest = encodeChunk({ n, ids, ...chunk });
  return [[keys.manifest(run, n), manifest] as const, [keys.ledger(run, n), emptyLedgerChunk(ids.length)] as const];
}

// KEYS 1 run  2… parts  ARGV 1 layout  2… their bytes; returns 1 if they were written
const writePartLua = `
local is = redis.call('HMGET', KEYS[1], 'state', 'layout')
if is[1] ~= 'preparing' or is[2] ~= ARGV[1] then return 0 end
for i = 2, #KEYS do redis.call('SET', KEYS[i], ARGV[i]) end
return 1
`;

/** The server's answer for an id that it did not confirm as deleted. */
type Detail = { chunk: number; index: number; cell: Cell; excerpt: string };

const detailsPerCode = 1_000;

/**
 * Stores the excerpt of the answer that settled an id, unless it was a 204: at most 1,000 for each code. Returns whether there is room for more. The
 * ledger doesn't depend on it. Throws if Redis fails.
 */
export async function noteDetail(
  redis: RedisClient,
  run: string,
  { chunk, index, cell, excerpt }: Detail,
): Promise<boolean> {
  const { outcome, code } = readCell(cell);
  if (excerpt === '' || !hasExcerpt(outcome)) return true;
  const kept = await redis.hincrby(keys.details(run), `count:${code}`, 1);
  if (kept <= detailsPerCode) await redis.hset(keys.details(run), `${chunk}.${index}`, excerpt);
  return kept < detailsPerCode;
}
