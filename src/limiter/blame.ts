import type { LearnedRate } from './learned-rate.ts';

/**
 * Whether trouble (5xx and lost answers) is the load's doing. A server may shed load by 503 instead of 429, and then its trouble counts as
 * refusals: the rate falls, and the trouble ends. Where it doesn't end, half of the servers behind the address are broken, say, and a
 * lower rate is no help: then trouble is not blamed on the load for a minute, and the rate is again what it was.
 */
export type Blame = {
  share: number; // of the answers, over the last seconds
  seenAtMs: number;
  trial: { sinceMs: number; worstShare: number; rate: LearnedRate } | null;
  acquittedUntilMs: number;
};

export type Verdict = { blame: Blame; isRefusal: boolean; restored: LearnedRate | null };

const least = { share: 0.1, answers: 3 };
const most = 0.75; // of the answers: more is an outage, which the breaker ends
const forgetsMs = 2_000;
const trialMs = 4_000;
const acquittedForMs = 60_000;

export function firstBlame(now: number): Blame {
  return { share: 0, seenAtMs: now, trial: null, acquittedUntilMs: 0 };
}

/** Pure. `seen`: answers since the last look. `rate`: as it stands, to come back to after an acquittal. */
export function blameLoad(
  blame: Blame,
  seen: { now: number; answers: number; trouble: number },
  rate: LearnedRate,
): Verdict {
  const now = seen.now;
  const next: Blame = { ...blame, share: shareOf(blame, seen), seenAtMs: seen.answers > 0 ? now : blame.seenAtMs };
  if (now < blame.acquittedUntilMs) return { blame: next, isRefusal: false, restored: null };
  const isRefusal = next.share >= least.share && seen.trouble > 0 && seen.trouble < most * seen.answers;
  if (blame.trial === null) {
    if (isRefusal && seen.trouble >= least.answers) next.trial = { sinceMs: now, worstShare: next.share, rate };
    return { blame: next, isRefusal: next.trial !== null, restored: null };
  }
  const worstShare = Math.max(blame.trial.worstShare, next.share);
  next.trial = { ...blame.trial, worstShare };
  if (now - blame.trial.sinceMs < trialMs) return { blame: next, isRefusal, restored: null };
  next.trial = null;
  if (next.share < worstShare / 2) return { blame: next, isRefusal, restored: null };
  next.acquittedUntilMs = now + acquittedForMs;
  return { blame: next, isRefusal: false, restored: blame.trial.rate };
}

function shareOf(blame: Blame, { now, answers, trouble }: { now: number; answers: number; trouble: number }): number {
  if (answers === 0) return blame.share;
  const kept = Math.exp(-Math.max(50, now - blame.seenAtMs) / forgetsMs);
  return kept * blame.share + (1 - kept) * (trouble / answers);
}
