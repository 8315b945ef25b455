import type { Outcome } from '../ledger/outcome.ts';
import type { RunState, SteeredBy } from '../ledger/run.ts';

/** A run at one moment, as the panel shows it. */
export type Snapshot = {
  runId: string;
  host: string;
  state: RunState;
  reason: string; // why it is in this state, or ''
  by: SteeredBy | ''; // what brought it there
  who: string; // who brought it there, or ''
  rows: number;
  ids: number; // rows that are sent: without rejected, duplicate and protected ones
  counts: Record<Outcome, number>;
  pending: number; // rows without an outcome
  inFlight: number | null; // requests on the wire; null when seen from another machine
  perSecond: number; // ids settled lately
  secondsLeft: number | null; // null when nothing can be said
  waiting: Waiting | null; // why nothing is sent though the run is running
  elapsedMs: number; // deleting time, without pauses
  events: readonly string[]; // what happened lately, oldest first; each with its time
};

export type Waiting = { reason: string; leftMs: number };

/** Ids of the run that have their outcome. */
export function settledOf({ ids, pending }: Snapshot): number {
  return ids - pending;
}
