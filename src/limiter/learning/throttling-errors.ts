import type { LearnedRate } from './learned-rate.ts';
import type { Sums } from './sums.ts';

/**
 * Whether errors (5xx and lost answers) are how the target throttles. They count as refusals until `countUntilMs`, because a rate of
 * `endedByPerSecond` seems to end them. If `seenLower` come at a much lower rate all the same, they come and go by themselves: that is not asked
 * again until `exemptUntilMs`, longer each time.
 */
export type ThrottlingErrors = {
  countUntilMs: number;
  endedByPerSecond: number;
  seenLower: number;
  exemptUntilMs: number;
  exemptMs: number;
};

const rules = {
  countMs: 300_000, // so long errors count as refusals, or …
  seenLower: 3, // … until so many of them come at a rate …
  muchLower: 0.5, // … under this part of the one that ended them; …
  exemptMs: 5_000, // … then not for so long, twice as long each time, …
  longestExemptMs: 600_000, // … at most
};

export const noErrors: ThrottlingErrors = {
  countUntilMs: 0,
  endedByPerSecond: 0,
  seenLower: 0,
  exemptUntilMs: 0,
  exemptMs: 0,
};

export function countsErrors({ countUntilMs }: ThrottlingErrors, now: number): boolean {
  return now < countUntilMs;
}

/** Whether a lower rate may be tried to end them. */
export function mayAskAboutErrors({ exemptUntilMs }: ThrottlingErrors, now: number): boolean {
  return now >= exemptUntilMs;
}

/** They count as refusals from now on, unless they are exempt. */
export function blameErrors(errors: ThrottlingErrors, endedByPerSecond: number, now: number): ThrottlingErrors {
  if (!mayAskAboutErrors(errors, now)) return errors;
  return { ...errors, countUntilMs: now + rules.countMs, endedByPerSecond, seenLower: 0 };
}

/** Exempts them where they come at a rate that is much lower, and not because of a ceiling. */
export function seeErrors(errors: ThrottlingErrors, { rate }: LearnedRate, sums: Sums): ThrottlingErrors {
  const isLower = rate < rules.muchLower * errors.endedByPerSecond && rate !== sums.ceiling;
  if (!countsErrors(errors, sums.now) || !isLower) return errors;
  const seenLower = errors.seenLower + sums.currentTrouble;
  if (seenLower < rules.seenLower) return { ...errors, seenLower };
  const exemptMs = Math.min(rules.longestExemptMs, Math.max(rules.exemptMs, 2 * errors.exemptMs));
  return { ...noErrors, exemptUntilMs: sums.now + exemptMs, exemptMs };
}

/** A limit that moves down slowly, as regular ramps show, takes the rate that ends errors with it. */
export function followLimit(errors: ThrottlingErrors, low: number): ThrottlingErrors {
  return low < errors.endedByPerSecond ? { ...errors, endedByPerSecond: low, seenLower: 0 } : errors;
}
