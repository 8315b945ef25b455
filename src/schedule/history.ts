import type { RunState } from '../ledger/run.ts';

/** What became of a slot. */
type SlotOutcome =
  | 'started' // its run was started; how that ended stands in `ended`
  | 'empty' // there was nothing to do: no file, or a list that may be empty
  | 'refused' // a guard refused the list, and paused the schedule
  | 'failed' // the source gave no whole list
  | 'skipped' // the last run had not ended, or the same list was under way
  | 'missed'; // nobody listened in time

/** One line of a schedule's history. Slots in a row with the same fate make one line. */
export type HistoryEntry = {
  slot: number; // the last of them; ms since 1970
  slots: number;
  at: number; // when it was seen to
  outcome: SlotOutcome;
  reason: string; // in words, '' where the outcome says all
  by: string; // who: user@machine
  run: string; // '' = none
  rows: number | null; // null = not known
  ended: RunEnd | null;
};

export const slotResults = [
  ...(['started', 'completed', 'incomplete', 'cancelled'] as const), // of its run
  ...(['empty', 'refused', 'failed', 'skipped', 'missed'] as const), // it has none
];

/** What became of a slot and of its run, in a word; `incomplete`: the run left ids. */
export function resultOf({ outcome, ended }: HistoryEntry): (typeof slotResults)[number] {
  if (outcome !== 'started' || ended === null) return outcome;
  if (ended.state === 'cancelled') return 'cancelled';
  return ended.left > 0 ? 'incomplete' : 'completed';
}

/** How a run ended, kept here because Redis forgets runs. */
export type RunEnd = { state: RunState; deleted: number; gone: number; left: number };

/** The history with one more line, newest first; it is kept short. */
export function withEntry(history: HistoryEntry[], entry: HistoryEntry): HistoryEntry[] {
  const [last, ...others] = history;
  const isMore =
    last !== undefined && entry.run === '' && last.outcome === entry.outcome && last.reason === entry.reason;
  if (isMore) return [{ ...entry, slots: last.slots + entry.slots }, ...others];
  return [entry, ...history].slice(0, keptEntries);
}

const keptEntries = 50;

/** The history that knows how a run ended. */
export function withEnd(history: HistoryEntry[], run: string, ended: RunEnd): HistoryEntry[] {
  return history.map((entry) => (entry.run === run ? { ...entry, ended } : entry));
}
