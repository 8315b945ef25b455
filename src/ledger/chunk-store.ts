import type { Chunk, SettledBlock } from '../model/row.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type Cell, fateOf } from './cell.ts';
import { emptyLedgerChunk } from './cells.ts';
import { encodeBlock, encodeChunk } from './manifest.ts';

/**
 * Writes a manifest chunk with its untouched ledger chunk, or a block of rows settled while reading, as long as the run is being prepared
 * with this layout. So writing twice is harmless: also by a producer that was stopped while another one finished planning and deleting
 * began, or took over with rows that stand elsewhere. Returns whether it was written.
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
