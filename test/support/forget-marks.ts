import { decodeLedgerChunk, headerBytes, isSettled } from '../../src/ledger/cell.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { keys } from '../../src/redis/keys.ts';

/** The ledger without its memory: whoever claims a chunk takes back the marks that its last holder left standing. */
export function forgetMarks(ledger: Ledger): Ledger {
  return {
    ...ledger,
    claim: async (run, chunk) => {
      const key = keys.ledger(run, chunk);
      const bytes = await ledger.redis.getBuffer(key);
      if (bytes) await ledger.redis.set(key, withoutMarks(bytes));
      return ledger.claim(run, chunk);
    },
  };
}

function withoutMarks(bytes: Buffer): Buffer {
  const forgotten = Buffer.from(bytes);
  for (const [i, cell] of decodeLedgerChunk(bytes).cells.entries()) {
    const isMarked = !isSettled(cell) && ((cell >> 4) & 1) === 1;
    if (isMarked) forgotten.writeUInt16BE(cell - (1 << 4), headerBytes + 2 * i);
  }
  return forgotten;
}
