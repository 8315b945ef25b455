import { keys } from '../redis/keys.ts';
import { decodeLedgerChunk, isSettled } from './cell.ts';
import type { Ledger } from './ledger.ts';
import { countSendable } from './max-deletes.ts';
import { type Run, readRun } from './run.ts';
import { readNumbered } from './tally.ts';

/**
 * Starts a planned run, or resumes one that an interrupt or a guard stopped. A run that an operator paused stays paused. Repeating it is harmless,
 * even for a process that read the run as planned and hung, while others started it and a guard stopped it. Returns false, and starts nothing, if a
 * stopped run is no longer as it was read: then no one has seen why it stopped this time.
 */
export async function startRun(
  ledger: Ledger,
  { id, state, by, revision }: Run,
  { who, reason }: { who: string; reason: string },
): Promise<boolean> {
  if (state === 'running' || (state === 'paused' && by === 'operator')) return true;
  // The reason of a planned run is recorded with its submission.
  const said = state === 'planned' ? '' : reason;
  const isStopped = state === 'paused' || state === 'halted';
  const seen = isStopped ? { seen: revision } : {};
  const steering = { action: 'start', by: 'operator', who, from: state, reason: said, ...seen } as const;
  return !(await ledger.steer(id, Date.now(), steering)).isStale;
}

const keysPerRead = 100;
const recoverReason = 'Redis had lost which chunks were left; every chunk was checked';

/**
 * Recovers orphaned chunks: Redis has lost `open` or `deferred`, or an entry in them, and the ledger shows which chunks have open cells. Halts the
 * run if no chunk has open cells, because the run would never end. Repeating it is harmless. Returns whether the run had orphaned chunks.
 */
export async function recoverOrphans(ledger: Ledger, id: string): Promise<boolean> {
  if (!(await ledger.hasOrphans(id))) return false;
  const run = await readRun(ledger.redis, id);
  if (run === null) return false;
  let found = 0;
  for await (const chunks of readNumbered(ledger.redis, (n) => keys.ledger(id, n), run.next, keysPerRead)) {
    // Also recover a missing chunk: its claim reports that it is broken.
    const open = chunks.filter(({ n, bytes }) => bytes === null || hasOpen(bytes, countSendable(run, n)));
    if (open.length > 0) await ledger.recover(id, numbersOf(open), recoverReason);
    found += open.length;
  }
  // The scan takes time: another process may have recovered the chunks, and the run may have ended since.
  if (found === 0 && (await ledger.hasOrphans(id))) await haltUnrecoverable(ledger, id);
  return true;
}

/** Whether one of the first `ids` ids has no outcome. */
function hasOpen(bytes: Buffer, ids: number): boolean {
  return !decodeLedgerChunk(bytes).cells.slice(0, ids).every(isSettled);
}

function numbersOf(chunks: readonly { n: number }[]): number[] {
  return chunks.map(({ n }) => n);
}

async function haltUnrecoverable(ledger: Ledger, id: string): Promise<void> {
  const reason =
    'its counters say that ids are left and its ledger has none: bring its data back and resume, or cancel it';
  await ledger.steer(id, Date.now(), { action: 'halt', reason, by: 'guard', who: '', halt: 'ledger_lost' });
}
