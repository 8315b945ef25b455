import type { Sums } from './sums.ts';

/** The requests that a target refused last because of its limit, for people: plain JSON. Times are ms of the Redis clock. */
export type Refusals = {
  /** Number of refusals that came together; 0 = nothing was refused yet. */
  refused: number;
  /** Answers from the refusals before until these. */
  answers: number;
  atMs: number;
  /** Accepted answers since then. */
  acceptedSince: number;
};

export const noRefusals: Refusals = { refused: 0, answers: 0, atMs: 0, acceptedSince: 0 };

const togetherMs = 1_000;

/** Counts the answers since the last update. Pure. */
export function countRefusals(before: Refusals, { now, accepted, refused }: Sums): Refusals {
  const acceptedSince = before.acceptedSince + accepted;
  if (refused === 0) return { ...before, acceptedSince };
  const { refused: others, answers } = now - before.atMs <= togetherMs ? before : noRefusals;
  return { refused: others + refused, answers: answers + acceptedSince + refused, atMs: now, acceptedSince: 0 };
}
