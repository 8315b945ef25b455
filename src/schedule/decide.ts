import type { Run } from '../ledger/run.ts';
import { dueOccurrences, nextOccurrence } from './occurrences.ts';
import type { Schedule } from './schedule.ts';

/** A run of the schedule that has not ended. */
export type LiveRun = Pick<Run, 'id' | 'state' | 'reason' | 'halt'>;

/** The decision about all occurrences of a schedule up to `occurrence`: there are `occurrences` of them, or `missed` ones before it. */
export type Decision =
  | { do: 'nothing' }
  | { do: 'pause'; halt: Run['halt']; reason: string }
  | { do: 'miss'; occurrence: number; occurrences: number; lateMs: number; hadWaited: boolean }
  | { do: 'skip'; occurrence: number; occurrences: number; reason: string }
  | { do: 'run'; occurrence: number; missed: number };

/** Decides about a schedule now. Pure: the same schedule, run and time give the same decision. */
export function decide(schedule: Schedule, live: LiveRun | null, now: number): Decision {
  if (schedule.state !== 'active') return { do: 'nothing' };
  if (live?.state === 'halted')
    return { do: 'pause', halt: live.halt, reason: `its run ${live.id} is halted: ${live.reason}` };
  const due = dueOccurrences(schedule, schedule.after, now);
  if (due === null) return decideWaiting(schedule, live, now);
  if (isMissed(schedule, due.latest, now)) {
    return { do: 'miss', occurrence: due.latest, occurrences: due.count, lateMs: now - due.latest, hadWaited: false };
  }
  if (live === null) return { do: 'run', occurrence: due.latest, missed: due.count - 1 };
  return { do: 'skip', occurrence: due.latest, occurrences: due.count, reason: `run ${live.id} has not ended` };
}

function isMissed({ missed, maxDelayMs }: Schedule, since: number, now: number): boolean {
  return missed === 'none' && now - since > maxDelayMs;
}

/** Decides about an occurrence that was to have a run when its process died, which is late only after the end of the last run. */
function decideWaiting(schedule: Schedule, live: LiveRun | null, now: number): Decision {
  const { waiting: occurrence, lastEndedAt, after } = schedule;
  if (occurrence === null || live !== null) return { do: 'nothing' };
  if (!isMissed(schedule, Math.max(occurrence, lastEndedAt), now)) return { do: 'run', occurrence, missed: 0 };
  return { do: 'miss', occurrence: after, occurrences: 1, lateMs: now - occurrence, hadWaited: true };
}

/** The time for which an occurrence has been due without being handled, or waits for the end of the last run, in ms; 0 = none. Pure. */
export function latenessMs(schedule: Schedule, now: number): number {
  if (schedule.state !== 'active') return 0;
  return Math.max(0, now - (schedule.waiting ?? nextOccurrence(schedule, schedule.after)));
}
