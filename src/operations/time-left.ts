import { type Run, sumActiveMs } from '../ledger/run.ts';
import type { TargetState } from '../limiter/read-target.ts';
import { timeToSend, type Work } from '../model/forecast.ts';
import { paceOf } from '../model/rate.ts';
import { readTimeWindow } from '../model/time-window.ts';

/** The facts about a run that decide how long it takes. */
type RunToTime = Pick<
  Run,
  'state' | 'ids' | 'settled' | 'rate' | 'quotaUntil' | 'window' | 'startsAt' | 'activeMs' | 'activeUntil'
>;

/** The speed of a run, and what bounds it. `quotas`: those of its target, in addition to those of its own rate. */
type Seen = { perSecond: number | null; limiter: TargetState | null; quotas?: Work['quotas'] };

/**
 * The seconds until a run has ended, including the waits for its quotas and its window; null for a run that is not running, or if it cannot be known.
 * Pure.
 */
export function estimateSecondsLeft(
  run: RunToTime,
  { perSecond, limiter, quotas = [] }: Seen,
  at: number,
): number | null {
  if (run.state !== 'running') return null;
  const { window, startsAt } = run;
  const bounds = { quotas: [...ownQuotas(run, at), ...quotas], window: readTimeWindow(window), startsAt };
  const isWaiting = bounds.quotas.some(({ count, used }) => used >= count);
  const speed = isWaiting || !perSecond ? allowed(run, limiter) : perSecond;
  const isBound = bounds.quotas.length > 0 || bounds.window !== null;
  if (!perSecond && (!isBound || speed === null)) return null;
  return timeToSend(run.ids - run.settled, speed ?? perSecond!, bounds, at) / 1_000;
}

/** The rate that the run may send at once it need not wait, per second; null = not known. */
function allowed({ rate }: RunToTime, limiter: TargetState | null): number | null {
  const ofTarget = limiter?.rate ?? 0;
  const known = [...(rate === null ? [] : [paceOf(rate)]), ...(ofTarget > 0 ? [ofTarget] : [])];
  return known.length === 0 ? null : Math.min(...known);
}

/** The quotas of the run's rate. A run that is younger than a period has sent in it everything that it has settled. */
function ownQuotas(run: RunToTime, at: number): Work['quotas'] {
  const [, ...further] = run.rate ?? [];
  const spent = further.find(({ perMs }) => run.quotaUntil > at && perMs >= run.quotaUntil - at);
  return further.map((quota) => {
    if (quota === spent) return { ...quota, used: quota.count, freeAt: run.quotaUntil };
    const isYoung = sumActiveMs(run, at) < quota.perMs;
    return { ...quota, used: isYoung ? Math.min(run.settled, quota.count - 1) : 0 };
  });
}
