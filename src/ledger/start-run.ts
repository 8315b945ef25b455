import { keys } from '../redis/keys.ts';
import { decodeLedgerChunk, isSettled } from './cell.ts';
import type { Ledger } from './ledger.ts';
import { type Run, readRun } from './run.ts';
import { readNumbered } from './tally.ts';

/** A run that somebody paused is left paused; one that an interrupt or a guard stopped goes on, since somebody asked for it again. */
export async function startRun(
  ledger: Ledger,
  { id, state, by }: Run,
  { who, reason }: { who: string; reason: string },
): Promise<void> {
  if (state === 'running' || (state === 'paused' && by === 'operator')) return;
  const why = state === 'planned' ? '' : reason; // that of a new run stands with its submission
  await ledger.steer(id, Date.now(), { action: 'start', reason: why, by: 'operator', who });
}

const windowSize = 100;
const why = 'Redis had lost which chunks were left; every chunk was checked';

/**
 * Recovers orphaned chunks: Redis lost `open` or `later`, or what a holder wrote there, and the ledger knows
 * which have open cells. Halts the run where it knows of none, since then it would never end. Repeating it is harmless; true if it did
 * anything.
 */
export async function recoverOrphans(ledger: Ledger, id: string): Promise<boolean> {
  if (!(await ledger.hasOrphans(id))) return false;
  const run = await readRun(ledger.redis, id);
  if (run === null) return false;
  let found = 0;
  for await (const chunks of readNumbered(ledger.redis, (n) => keys.ledger(id, n), run.chunks, windowSize)) {
    // One that is missing is recovered, too: its claim reports that.
    const open = chunks.filter(({ bytes }) => bytes === null || !decodeLedgerChunk(bytes).cells.every(isSettled));
    if (open.length > 0) await ledger.recover(id, numbersOf(open), why);
    found += open.length;
  }
  // The scan takes time: another process may have recovered them, and the run may have ended since.
  if (found === 0 && (await ledger.hasOrphans(id))) await haltUnrecoverable(ledger, id);
  return true;
}

function numbersOf(chunks: readonly { n: number }[]): number[] {
  return chunks.map(({ n }) => n);
}

async function haltUnrecoverable(ledger: Ledger, id: string): Promise<void> {
  const reason =
    'its counters say that ids are left and its ledger has none: bring its data back and resume, or cancel it';
  await ledger.steer(id, Date.now(), { action: 'halt', reason, by: 'guard', who: '', halt: 'ledger_lost' });
}
