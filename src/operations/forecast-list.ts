import type { List } from '../input/with-list.ts';
import type { RunRules } from '../ledger/run-rules.ts';
import { toBound } from '../limiter/quotas.ts';
import type { Work } from '../model/forecast.ts';
import { sumIds } from '../model/resource.ts';
import { readTimeWindow } from '../model/time-window.ts';
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
