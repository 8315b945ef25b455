import type { LearnedRate } from './learned-rate.ts';

/**
 * Whether errors (5xx and lost answers) mean overload. A server may shed load by 503 instead of 429, and then its errors count as
 * refusals: the rate falls, and the errors end. If they don't end, the cause is another one (half of the servers behind the address are broken, for
 * example), and a lower rate does not help: then overload is ruled out for a minute, and the rate is restored.
 */
export type OverloadState = {
  share: number; // of the answers, over the last seconds
  seenAtMs: number;
  experiment: { sinceMs: number; worstShare: number; rate: LearnedRate } | null;
  ruledOutUntilMs: number;
};

export type OverloadVerdict = { overload: OverloadState; isRefusal: boolean; restored: LearnedRate | null };

const least = { share: 0.1, answers: 3 };
const most = 0.75; // of the answers: more is an outage, which the breaker ends
const forgetsMs = 2_000;
const experimentMs = 4_000;
const ruledOutForMs = 60_000;

export function initialOverload(now: number): OverloadState {
  return { share: 0, seenAtMs: now, experiment: null, ruledOutUntilMs: 0 };
}

/** Pure. `seen`: answers since the last update. `rate`: the current one, which is restored when overload is ruled out. */
export function detectOverload(
  overload: OverloadState,
  seen: { now: number; answers: number; trouble: number },
  rate: LearnedRate,
): OverloadVerdict {
  const now = seen.now;
  const next: OverloadState = {
    ...overload,
    share: shareOf(overload, seen),
    seenAtMs: seen.answers > 0 ? now : overload.seenAtMs,
  };
  if (now < overload.ruledOutUntilMs) return { overload: next, isRefusal: false, restored: null };
  const isRefusal = next.share >= least.share && seen.trouble > 0 && seen.trouble < most * seen.answers;
  if (overload.experiment === null) {
    if (isRefusal && seen.trouble >= least.answers) next.experiment = { sinceMs: now, worstShare: next.share, rate };
    return { overload: next, isRefusal: next.experiment !== null, restored: null };
  }
  const worstShare = Math.max(overload.experiment.worstShare, next.share);
  next.experiment = { ...overload.experiment, worstShare };
  if (now - overload.experiment.sinceMs < experimentMs) return { overload: next, isRefusal, restored: null };
  next.experiment = null;
  if (next.share < worstShare / 2) return { overload: next, isRefusal, restored: null };
  next.ruledOutUntilMs = now + ruledOutForMs;
  return { overload: next, isRefusal: false, restored: overload.experiment.rate };
}

function shareOf(
  overload: OverloadState,
  { now, answers, trouble }: { now: number; answers: number; trouble: number },
): number {
  if (answers === 0) return overload.share;
  const kept = Math.exp(-Math.max(50, now - overload.seenAtMs) / forgetsMs);
  return kept * overload.share + (1 - kept) * (trouble / answers);
}
