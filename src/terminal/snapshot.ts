import type { Conclusion } from '../ledger/conclusion.ts';
import type { RunState } from '../ledger/run.ts';
import type { Standing } from '../ledger/standing.ts';
import type { TargetState } from '../limiter/read-target.ts';
import type { OutcomeCounts } from '../model/outcome.ts';
import type { Rate } from '../model/rate.ts';

/** A run at one moment, as the panel shows it. */
export type Snapshot = {
  at: number; // ms since 1970
  runId: string;
  host: string;
  rehearsalOf: string; // as in the record of the run
  state: RunState;
  conclusion: Conclusion | null; // null until the run has ended
  reason: string; // reason for its state, or ''
  who: string; // operator who caused its state, or ''
  standings: readonly Standing[]; // what holds it back, from `findStandings`
  advice: string; // what to do about the first cause, as the reader types it; '' = nothing
  rows: number;
  ids: number; // rows to send: without rejected, duplicate and protected ones
  counts: OutcomeCounts;
  pending: number; // rows without an outcome
  inFlight: number | null; // requests of this process; null for a run that other processes delete
  perSecond: number | null; // ids settled in the last seconds; null at first
  idleMs: number; // time in ms in which no id was settled, since the display began
  silentMs: number | null; // time in ms in which no request was answered, since the display began; null if it was not read
  redisMs: number; // the longest round trip to Redis of the processes that delete it; 0 if none of them is far
  secondsLeft: number | null; // null if it cannot be estimated
  limiter: TargetState | null; // of its target
  rate: Rate | null; // rate of the run itself
  elapsedMs: number; // deleting time, without pauses
  events: readonly string[]; // the last events, oldest first, each with its time
};

/** Ids of the run that have their outcome. */
export function countSettled({ ids, pending }: Snapshot): number {
  return ids - pending;
}
