import { ExpungeError } from '../errors.ts';
import { type Outcome, outcomes } from '../model/outcome.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { findBrokenChunks } from './broken-chunks.ts';
import type { Cell, Fate } from './cell.ts';
import { decodeLedgerChunk, headerBytes } from './cells.ts';
import { expireRun } from './end-run.ts';
import { fateIn } from './fate-in-run.ts';
import { decodeBlock } from './manifest.ts';
import { readNumbered } from './read-numbered.ts';
import { isSealed, type Run, readRun } from './run.ts';

/** How many ids ended badly for one reason. */
type BadCode = { outcome: 'failed' | 'unknown'; code: string; count: number };

/** What a scan of a run's ledger found. `broken` names chunks and blocks that are missing or of a wrong size. */
export type Tally = {
  counts: Record<Outcome, number>;
  pending: number;
  attempts: number;
  badCodes: BadCode[]; // the most frequent first
  broken: string[];
};

const windowSize = 100;
const cellValues = 2 ** 16;

/** Counts every row of the run where it is stored, in bounded memory. In a sealed run open cells read as they do at the seal. */
export async function tallyLedger(redis: RedisClient, run: Run): Promise<Tally> {
  const tally = tallyCells(await countCells(redis, run), fateIn(run));
  await addBlocks(redis, run, tally);
  const rows = tally.pending + sumOf(tally.counts);
  if (rows !== run.rows) tally.broken = await findBrokenChunks(redis, run);
  return tally;
}

export function sumOf(counts: Record<Outcome, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** How often each value of a cell stands in the ledger: there are few of them, whatever the number of ids. */
async function countCells(redis: RedisClient, run: Run): Promise<Float64Array> {
  const found = new Float64Array(cellValues);
  for await (const chunks of readNumbered(redis, (n) => keys.ledger(run.id, n), run.chunks, windowSize)) {
    for (const { bytes } of chunks) {
      if (bytes === null || bytes.length < headerBytes || bytes.length % 2 === 1) continue;
      for (const cell of decodeLedgerChunk(bytes).cells) found[cell]! += 1;
    }
  }
  return found;
}

function tallyCells(found: Float64Array, fate: (cell: Cell) => Fate): Tally {
  const tally: Tally = { counts: noCounts(), pending: 0, attempts: 0, badCodes: [], broken: [] };
  const bad = new Map<string, BadCode>();
  found.forEach((count, cell) => {
    if (count === 0) return;
    const { outcome, code, attempts } = fate(cell);
    tally.attempts += attempts * count;
    if (outcome === 'pending') tally.pending += count;
    else tally.counts[outcome] += count;
    if (outcome !== 'failed' && outcome !== 'unknown') return;
    const before = bad.get(`${outcome} ${code}`)?.count ?? 0;
    bad.set(`${outcome} ${code}`, { outcome, code, count: before + count });
  });
  tally.badCodes = [...bad.values()].sort((a, b) => b.count - a.count);
  return tally;
}

function noCounts(): Record<Outcome, number> {
  return Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as Record<Outcome, number>;
}

async function addBlocks(redis: RedisClient, run: Run, { counts }: Tally): Promise<void> {
  for await (const blocks of readNumbered(redis, (n) => keys.settled(run.id, n), run.blocks, windowSize)) {
    for (const { n, bytes } of blocks) {
      for (const row of bytes === null ? [] : decodeBlock(n, bytes).rows) counts[row.outcome] += 1;
    }
  }
}

/**
 * What follows the end of a run, for whoever sees it first: the open cells of a cancelled run get their outcome in its counters, and all keys
 * of it their expiry. Writes absolute values of a ledger that no longer changes, so repeating it, also by two processes at once, is
 * harmless. A broken ledger leaves the counters as they are. Returns the run as it stands then; throws INTERNAL if it is gone.
 */
export async function sealTally(redis: RedisClient, run: Run): Promise<Run> {
  if (run.state === 'cancelled' && !run.tallied) await writeTally(redis, run);
  // Best effort: it is done by whoever comes next, and a Redis that takes no writes can still be read.
  if (isSealed(run.state) && !run.isExpiring) await expireRun(redis, run).catch(() => {});
  const sealed = await readRun(redis, run.id);
  if (sealed === null) throw new ExpungeError('INTERNAL', `run ${run.id} is no longer in Redis`);
  return sealed;
}

async function writeTally(redis: RedisClient, run: Run): Promise<void> {
  const { counts, broken } = await tallyLedger(redis, run);
  if (broken.length > 0) return;
  const { deleted, absent, gone_unconfirmed, failed, unknown, not_attempted } = counts;
  const sent = { deleted, absent, gone_unconfirmed, failed, unknown, not_attempted };
  await redis.hset(keys.run(run.id), { ...sent, tallied: 1 });
}
