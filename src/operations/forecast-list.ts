import { ExpungeError } from '../errors.ts';
import type { List } from '../input/with-list.ts';
import type { RunRules } from '../ledger/run-rules.ts';
import { toBound } from '../limiter/quotas.ts';
import { type Cause, forecast, forecastEnd, neededRate, type Work } from '../model/forecast.ts';
import { sumIds } from '../model/resource.ts';
import { readTimeWindow } from '../model/time-window.ts';
import { lateText } from '../terminal/forecast-text.ts';
import type { RunOptions } from './list-action.ts';
import type { TargetBounds } from './read-bounds.ts';

/** Number of ids of a list that are sent: the first ones, up to `--max-deletes`. */
export function countRequests({ spool }: List, { maxDeletes }: { maxDeletes?: number | null | undefined }): number {
  return Math.min(sumIds(spool.ids), maxDeletes ?? Number.POSITIVE_INFINITY);
}

/** `startsAt`: the time before which nothing is sent, in ms since 1970; 0 = it starts at once. */
type ToSend = {
  requests: number;
  rules: Pick<RunRules, 'rate' | 'window' | 'stopAt' | 'maxActiveMs'>;
  startsAt?: number;
};

/** The facts that decide how long a run takes, before it begins. */
export function toWork(
  { requests, rules, startsAt = 0 }: ToSend,
  { learned, isLimit, perSecond, quotas }: TargetBounds,
): Work {
  return {
    requests,
    rate: rules.rate,
    limit: perSecond,
    learned: learned === null || learned.isCapped ? null : { ...learned, isLimit },
    quotas: quotas.map(toBound),
    window: readTimeWindow(rules.window),
    startsAt,
    stopAt: rules.stopAt,
    maxActiveMs: rules.maxActiveMs,
  };
}

/**
 * The time before which nothing of a run is sent if it is made now; 0 = it starts at once. `acceptedAt`: when its grace period began. Redis computes
 * the same by its own clock; see `start-time.lua.ts`. Pure.
 */
export function findStart(
  { graceMs, startAt }: Pick<RunRules, 'graceMs' | 'startAt'>,
  minGraceMs: number,
  acceptedAt: number,
): number {
  const longest = Math.max(graceMs, minGraceMs);
  return Math.max(startAt, longest > 0 ? acceptedAt + longest : 0);
}

/** Why a run cannot end in time, in words, and what to do. */
type Late = { reason: string; next: string };

/**
 * The reason why a run cannot end by `finishBy` (ms since 1970) at any rate that is allowed and known to be accepted; null = it can, or no time was
 * given. If the speed of the API is not known, only set rates count. Raises no rate.
 */
export function explainLate(work: Work, { finishBy }: Pick<RunOptions, 'finishBy'>, now: number): Late | null {
  if (finishBy === undefined) return null;
  const made = forecast(work, now);
  if (made.fits === null && forecastEnd(made) <= finishBy) return null;
  const needed = neededRate(work, finishBy, now);
  const next = needed === null ? 'send a part of it (--limit), or name a later time' : nextByCause[made.causes[0]!];
  return { reason: lateText(made, finishBy, needed), next };
}

/** Throws GUARD for a run that cannot end in time. */
export function requireEndInTime(work: Work, options: Pick<RunOptions, 'finishBy'>, now: number): void {
  const late = explainLate(work, options, now);
  if (late !== null) throw new ExpungeError('GUARD', `${late.reason}; nothing was sent`, { next: late.next });
}

const nextByCause: Record<Cause, string> = {
  rate: 'allow a higher --rate, or name a later time',
  limit: 'have the limit of the target raised, or name a later time',
  learned: 'the API refused more than that: ask for a higher limit, or name a later time',
  quota: 'name a later time',
  window: 'name a later time',
  unknown: 'name a later time',
};
