import type { Cause } from '../ledger/standing.ts';

/** The state of a run that one cause holds back. Times: ms since 1970. */
export type Wait = {
  since: number;
  settled: number; // number of rows that had an outcome then
  isPublished: boolean;
  leftAt: number | null; // when the cause was first seen to have gone; null = it still holds the run
};

/** How long a run makes no progress before this is reported, in ms. */
const waitMs = 900_000;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * Causes that a person may want to end, each with how long a run must have continued without it before it is reported again. A daily limit may be
 * used up within hours, and a limiter that alternates lets the run continue between two waits. Each action of a person counts as new.
 */
const restMs: Partial<Record<Cause, number>> = {
  stop: 0,
  stop_file: 0,
  unreadable_rate: 0,
  other_definition: 0,
  no_token: hourMs,
  retry_after: hourMs,
  circuit: hourMs,
  outage: hourMs,
  limit: dayMs,
  run_quota: dayMs,
};

/** The current state of a run: its first cause that nothing is sent, if any, and how many of its rows have an outcome. */
type Held = { why: Cause | null; settled: number };

/** The changes of the known waits of a run, by cause: each changed wait as it is then; null = it is over. Pure. */
export function waitChanges(
  known: ReadonlyMap<Cause, Wait>,
  { why, settled }: Held,
  now: number,
): { why: Cause; to: Wait | null; isNewlyPublished: boolean }[] {
  const all = new Set([...known.keys(), ...(why !== null && restMs[why] !== undefined ? [why] : [])]);
  return [...all].flatMap((cause) => {
    const from = known.get(cause) ?? null;
    const to = nextWait(from, cause === why ? settled : null, now, restMs[cause] ?? 0);
    if (from === to) return [];
    return [{ why: cause, to, isNewlyPublished: to?.isPublished === true && from?.isPublished !== true }];
  });
}

/** The next state of a wait. `settled`: null if the cause does not hold the run now. */
function nextWait(wait: Wait | null, settled: number | null, now: number, rest: number): Wait | null {
  const isRested = wait?.isPublished === true && wait.leftAt !== null && now - wait.leftAt > rest;
  if (settled === null) {
    if (wait === null || !wait.isPublished || isRested) return null;
    return wait.leftAt === null ? { ...wait, leftAt: now } : wait;
  }
  if (wait === null || isRested || (!wait.isPublished && wait.settled !== settled))
    return { since: now, settled, isPublished: false, leftAt: null };
  if (!wait.isPublished) return now - wait.since >= waitMs ? { ...wait, isPublished: true } : wait;
  return wait.leftAt === null ? wait : { ...wait, leftAt: null };
}
