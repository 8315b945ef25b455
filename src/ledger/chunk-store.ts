import type { Chunk, SettledBlock } from '../input/row.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type Cell, fateOf } from './cell.ts';
import { emptyLedgerChunk } from './cells.ts';
import { encodeBlock, encodeChunk } from './manifest.ts';

/**
 * Writes a manifest chunk and its untouched ledger chunk, unless they are there. Writing twice is harmless: also by a producer that
 * was stopped while another one finished planning and deleting began.
 */
export function writeChunk(redis: RedisClient, run: string, chunk: Chunk): Promise<unknown> {
  return redis.msetnx(
    keys.manifest(run, chunk.n),
    encodeChunk(chunk),
    keys.ledger(run, chunk.n),
    emptyLedgerChunk(chunk.ids.length),
  );
}

/** Writes a block of rows settled while reading. Writing twice is harmless: the same list gives the same bytes. */
export function writeBlock(redis: RedisClient, run: string, block: SettledBlock): Promise<unknown> {
  return redis.set(keys.settled(run, block.n), encodeBlock(block));
}

/** What a server said about an id that ended badly. */
export type Detail = { chunk: number; index: number; cell: Cell; excerpt: string };

const detailsPerCode = 1_000;

/** Keeps the excerpt of a failed or unknown id, up to 1,000 for each code. Best effort: the ledger doesn't depend on it. */
export async function noteDetail(
  redis: RedisClient,
  run: string,
  { chunk, index, cell, excerpt }: Detail,
): Promise<void> {
  const { outcome, code } = fateOf(cell);
  if (excerpt === '' || (outcome !== 'failed' && outcome !== 'unknown')) return;
  const kept = await redis.hincrby(keys.details(run), `count:${code}`, 1);
  if (kept <= detailsPerCode) await redis.hset(keys.details(run), `${chunk}.${index}`, excerpt);
}
