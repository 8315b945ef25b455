/** The two kinds of objects the API can delete. */
export const resources = ['annotations', 'views'] as const;
export type Resource = (typeof resources)[number];

/** What finally happened to one id that could be sent, in the order of their rank: a higher one replaces a lower one. */
export const sentOutcomes = ['failed', 'unknown', 'absent', 'gone_unconfirmed', 'deleted'] as const;
export type SentOutcome = (typeof sentOutcomes)[number];

/** How a row can be settled while it is read; it is never sent. */
export type ReadOutcome = 'rejected' | 'duplicate' | 'protected';

/** Every word a report can hold in its `outcome` column. Every row of a run gets exactly one. */
export const outcomes = [
  'deleted',
  'absent',
  'gone_unconfirmed',
  'failed',
  'unknown',
  'not_attempted',
  'rejected',
  'duplicate',
  'protected',
] as const;
export type Outcome = (typeof outcomes)[number];

const successes: readonly Outcome[] = ['deleted', 'absent', 'gone_unconfirmed', 'duplicate', 'protected'];

/** Whether a row with this outcome needs nobody's attention. */
export function isSuccess(outcome: Outcome): boolean {
  return successes.includes(outcome);
}
