import { outcomes } from '../model/outcome.ts';
import type { Run } from './run.ts';
import { sumOf, type Tally } from './tally.ts';

/**
 * Whether nothing was lost: rows = Σ outcomes + pending, and the counters of the run equal the scan. Returns null, or a
 * sentence that says what does not add up. `run` must have been read before the scan: a live run moves on meanwhile.
 */
export function checkConservation(run: Run, tally: Tally): string | null {
  if (tally.broken.length > 0) return sentence(tally.broken);
  const rows = sumOf(tally.counts) + tally.pending;
  if (rows !== run.rows) return sentence([`the list had ${count(run.rows)} rows, the ledger holds ${count(rows)}`]);
  const troubles = hasFinalCounters(run) ? compareCounters(run, tally) : compareProgress(run, tally);
  return troubles.length === 0 ? null : sentence(troubles);
}

/** `12,345 rows = 12,000 deleted + 340 absent + 5 failed`. */
export function sumInWords(tally: Tally): string {
  const parts = [...outcomes.map((outcome) => [tally.counts[outcome], outcome] as const), [tally.pending, 'pending']];
  const words = parts.filter(([n]) => n !== 0).map(([n, word]) => `${count(Number(n))} ${word}`);
  return `${count(sumOf(tally.counts) + tally.pending)} rows = ${words.join(' + ') || '0'}`;
}

function hasFinalCounters(run: Run): boolean {
  return run.state === 'completed' || (run.state === 'cancelled' && run.tallied);
}

function compareCounters(run: Run, tally: Tally): string[] {
  const pairs: (readonly [string, number, number])[] = [
    ...outcomes.map((outcome) => [outcome, run.counts[outcome], tally.counts[outcome]] as const),
    ['attempts', run.attempts, tally.attempts],
  ];
  const unequal = pairs.filter(([, counted, found]) => counted !== found);
  return unequal.map(([word, counted, found]) => `${word}: ${count(counted)} counted, ${count(found)} in the ledger`);
}

/** A cell that was settled once stays settled, so a later scan never finds fewer than were counted. */
function compareProgress(run: Run, tally: Tally): string[] {
  const pendingThen = run.ids - run.settled;
  if (run.state === 'cancelled' || tally.pending <= pendingThen) return [];
  return [`${count(pendingThen)} ids were pending, ${count(tally.pending)} are open in the ledger`];
}

function sentence(troubles: string[]): string {
  return `does not add up: ${troubles.join('; ')}`;
}

function count(n: number): string {
  return n.toLocaleString('en-US');
}
