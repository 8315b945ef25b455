import type { Cause } from '../ledger/standing.ts';

/** What is known of a run that one cause holds back. Times: ms since 1970. */
export type Wait = {
  since: number;
  settled: number; // rows that had an outcome then
  isTold: boolean;
  leftAt: number | null; // when it was seen first that the cause holds the run no more; null = it does
};

/** For how long a run makes no progress before that is told. */
const waitMs = 900_000;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * The causes that a person may want to end, each with how long a run must have gone on without it before it is told again. What a budget
 * allows in a day may be used up in some hours, and a limiter that alternates goes on between two waits. Each order of a person is new.
 */
const restMs: Partial<Record<Cause, number>> = {
  stop: 0,
  stop_file: 0,
  unreadable_rate: 0,
  no_token: hourMs,
  retry_after: hourMs,
  circuit: hourMs,
  outage: hourMs,
  budget: dayMs,
  quota: dayMs,
  run_quota: dayMs,
};

/** A run as it is now: its first cause that nothing is sent, if any, and how many of its rows have an outcome. */
type Held = { why: Cause | null; settled: number };

/** What becomes of the known waits of a run, by their cause: of each that has changed what it is then; null = it is over. Pure. */
export function waitChanges(
  known: ReadonlyMap<Cause, Wait>,
  { why, settled }: Held,
  now: number,
): { why: Cause; to: Wait | null; isNews: boolean }[] {
  const all = new Set([...known.keys(), ...(why !== null && restMs[why] !== undefined ? [why] : [])]);
  return [...all].flatMap((cause) => {
    const from = known.get(cause) ?? null;
    const to = nextWait(from, cause === why ? settled : null, now, restMs[cause] ?? 0);
    if (from === to) return [];
    return [{ why: cause, to, isNews: to?.isTold === true && from?.isTold !== true }];
  });
}

/** `settled`: null if the cause does not hold the run now. */
function nextWait(wait: Wait | null, settled: number | null, now: number, rest: number): Wait | null {
  const isRested = wait?.isTold === true && wait.leftAt !== null && now - wait.leftAt > rest;
  if (settled === null) {
    if (wait === null || !wait.isTold || isRested) return null;
    return wait.leftAt === null ? { ...wait, leftAt: now } : wait;
  }
  if (wait === null || isRested || (!wait.isTold && wait.settled !== settled))
    return { since: now, settled, isTold: false, leftAt: null };
  if (!wait.isTold) return now - wait.since >= waitMs ? { ...wait, isTold: true } : wait;
  return wait.leftAt === null ? wait : { ...wait, leftAt: null };
}
