import { type Cell, untouched } from './cell.ts';

/** The bytes of a ledger chunk: when its last pass ended (6 bytes, ms), then 2 bytes a cell; all big-endian. */
export const headerBytes = 6;

export type LedgerChunk = { passEndedAt: number; cells: Cell[] };

/** The ledger chunk of `size` ids nobody has touched. */
export function emptyLedgerChunk(size: number): Buffer {
  return Buffer.alloc(headerBytes + 2 * size, untouched);
}

export function decodeLedgerChunk(bytes: Buffer): LedgerChunk {
  const cells: Cell[] = [];
  for (let at = headerBytes; at < bytes.length; at += 2) cells.push((bytes[at]! << 8) | bytes[at + 1]!);
  return { passEndedAt: bytes.readUIntBE(0, headerBytes), cells };
}
