import type { Conclusion } from '../ledger/conclusion.ts';
import type { Run, RunState, SteeredBy } from '../ledger/run.ts';
import { isSilent, type TargetState } from '../limiter/read-target.ts';
import { type Stop, stopText } from '../limiter/stop.ts';
import type { OutcomeCounts } from '../model/outcome.ts';
import type { Rate } from '../model/rate.ts';
import { readTimeWindow, windowStateAt, windowTime } from '../model/time-window.ts';

/** A run at one moment, as the panel shows it. */
export type Snapshot = {
  resumeCommand: string; // as the reader types it, like the next one
  startCommand: string; // lifts a stop of its target
  at: number; // ms since 1970
  runId: string;
  host: string;
  state: RunState;
  conclusion: Conclusion | null; // null until it has ended
  reason: string; // why it is in this state, or ''
  by: SteeredBy | ''; // what brought it there
  who: string; // the operator who did, or ''
  isAbandoned: boolean; // its state is running, but its command has ended
  rows: number;
  ids: number; // rows that are sent: without rejected, duplicate and protected ones
  counts: OutcomeCounts;
  pending: number; // rows without an outcome
  inFlight: number | null; // requests of this process; null for a run of other processes
  perSecond: number | null; // ids settled in the last seconds; null at first
  idleMs: number; // how long no id was settled, since the display began
  nextTryAt: number | null; // when failed ids are retried, if nothing else is left to do; ms since 1970
  secondsLeft: number | null; // null if it cannot be estimated
  stop: Stop | null; // in force until an operator ends it
  waiting: Waiting | null; // why this process sends nothing for a running run
  targets: readonly TargetState[]; // the limiters of its target
  rate: Rate | null; // its own
  quotaUntil: number; // when a spent quota of its rate has room again, ms since 1970; 0 = none is spent
  elapsedMs: number; // deleting time, without pauses
  events: readonly string[]; // the last events, oldest first; each with its time
};

/** `leftMs` 0: the duration is unknown. `for`: what it waits for, if the reason does not say. */
export type Waiting = { reason: string; leftMs: number; for?: string };

/** Ids of the run that have their outcome. */
export function settledOf({ ids, pending }: Snapshot): number {
  return ids - pending;
}

/** Why nothing is sent now, for any reason: a stop, this process, or the target; null if requests are sent. */
export function waitingOf({ stop, waiting, targets }: Pick<Snapshot, 'stop' | 'waiting' | 'targets'>): Waiting | null {
  if (stop !== null) return { reason: stopText(stop), leftMs: 0 };
  const held = targets.find((target) => target.hold !== null || (target.outage !== null && !isSilent(target)));
  return waiting ?? held?.hold ?? (held?.outage ? { reason: held.outage.reason, leftMs: 0 } : null);
}

/** `outside its window, goes on Mon 22:00 Europe/Berlin`; null for a run that is inside, or not running. */
export function waitForWindow({ state, window: text }: Pick<Run, 'state' | 'window'>, now: number): Waiting | null {
  const window = readTimeWindow(text);
  if (state !== 'running' || window === null) return null;
  const { isOpen, until } = windowStateAt(window, now);
  return isOpen ? null : { reason: `outside its window, goes on ${windowTime(window, until)}`, leftMs: until - now };
}
