import type { LearnedRate } from './learned-rate.ts';
import type { Sums } from './sums.ts';

/**
 * Whether the target throttles by errors (5xx and lost answers). Errors count as refusals until `countUntilMs`, because a rate of `endedByPerSecond`
 * seems to end them. If `seenLower` errors come at a much lower rate anyway, they do not depend on the rate. The question is then not asked again
 * until `exemptUntilMs`. Each such time is longer than the last.
 */
export type ThrottlingErrors = {
  countUntilMs: number;
  endedByPerSecond: number;
  seenLower: number;
  exemptUntilMs: number;
  exemptMs: number;
};

const rules = {
  countMs: 300_000, // time for which errors count as refusals
  seenLower: 3, // errors at a much lower rate after which they no longer count as refusals
  muchLowerShare: 0.5, // a much lower rate is below this share of the rate that ended them
  exemptMs: 5_000, // first time for which errors do not count after that; each further time is twice as long
  maxExemptMs: 600_000, // longest time for which errors do not count after that
};

export const noErrors: ThrottlingErrors = {
  countUntilMs: 0,
  endedByPerSecond: 0,
  seenLower: 0,
  exemptUntilMs: 0,
  exemptMs: 0,
};

export function areErrorsThrottling({ countUntilMs }: ThrottlingErrors, now: number): boolean {
  return now < countUntilMs;
}

/** Whether a trial of a lower rate is allowed, to see if it ends the errors. */
export function canAskAboutErrors({ exemptUntilMs }: ThrottlingErrors, now: number): boolean {
  return now >= exemptUntilMs;
}

/** Counts errors as refusals from now on, unless they are exempt. */
export function blameErrors(errors: ThrottlingErrors, endedByPerSecond: number, now: number): ThrottlingErrors {
  if (!canAskAboutErrors(errors, now)) return errors;
  return { ...errors, countUntilMs: now + rules.countMs, endedByPerSecond, seenLower: 0 };
}

/** Exempts errors that come at a much lower rate. */
export function updateErrors(errors: ThrottlingErrors, { rate }: LearnedRate, sums: Sums): ThrottlingErrors {
  const isLower = rate < rules.muchLowerShare * errors.endedByPerSecond;
  if (!areErrorsThrottling(errors, sums.now) || !isLower) return errors;
  const seenLower = errors.seenLower + sums.currentTrouble;
  if (seenLower < rules.seenLower) return { ...errors, seenLower };
  const exemptMs = Math.min(rules.maxExemptMs, Math.max(rules.exemptMs, 2 * errors.exemptMs));
  return { ...noErrors, exemptUntilMs: sums.now + exemptMs, exemptMs };
}

/** Lowers the rate that ends errors with a limit that falls slowly, as regular ramps show. */
export function followLimit(errors: ThrottlingErrors, low: number): ThrottlingErrors {
  return low < errors.endedByPerSecond ? { ...errors, endedByPerSecond: low, seenLower: 0 } : errors;
}
