import type { RunState, SteeredBy } from '../ledger/run.ts';
import { isSilent, type TargetState } from '../limiter/read-target.ts';
import { type Stop, stopText } from '../limiter/stop.ts';
import type { OutcomeCounts } from '../model/outcome.ts';
import type { Rate } from '../model/rate.ts';

/** A run at one moment, as the panel shows it. */
export type Snapshot = {
  at: number; // ms since 1970
  runId: string;
  host: string;
  state: RunState;
  reason: string; // why it is in this state, or ''
  by: SteeredBy | ''; // what brought it there
  who: string; // who brought it there, or ''
  isAbandoned: boolean; // it is running, and the command that works on it has ended
  rows: number;
  ids: number; // rows that are sent: without rejected, duplicate and protected ones
  counts: OutcomeCounts;
  pending: number; // rows without an outcome
  inFlight: number | null; // requests on the wire; null when seen from another machine
  perSecond: number | null; // ids settled lately; null when nobody has watched yet
  idleMs: number; // how long no id was settled, as far as that was watched
  nextTryAt: number | null; // when ids in trouble are tried again, if nothing else is left to do; ms since 1970
  secondsLeft: number | null; // null when nothing can be said
  stop: Stop | null; // what keeps the run standing until somebody lifts it
  waiting: Waiting | null; // why nothing is sent though the run is running, where the reason lies with us
  targets: readonly TargetState[]; // the limiters of its target
  rate: Rate | null; // its own
  quotaUntil: number; // when a spent quota of its rate has room again, ms since 1970; 0 = none is spent
  elapsedMs: number; // deleting time, without pauses
  events: readonly string[]; // what happened lately, oldest first; each with its time
};

/** `leftMs` 0: nobody knows how long. `for`: what for, if that isn't told by the reason. */
export type Waiting = { reason: string; leftMs: number; for?: string };

/** Ids of the run that have their outcome. */
export function settledOf({ ids, pending }: Snapshot): number {
  return ids - pending;
}

/** Why nothing is sent at the moment, whoever the reason lies with. */
export function waitingOf({ stop, waiting, targets }: Pick<Snapshot, 'stop' | 'waiting' | 'targets'>): Waiting | null {
  if (stop !== null) return { reason: stopText(stop), leftMs: 0 };
  const held = targets.find((target) => target.hold !== null || (target.outage !== null && !isSilent(target)));
  return waiting ?? held?.hold ?? (held?.outage ? { reason: held.outage.reason, leftMs: 0 } : null);
}
