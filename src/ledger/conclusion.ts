import type { ErrorCode } from '../errors.ts';
import { isGone, isSuccess, isUncertain, type Outcome, sumOutcomes } from '../model/outcome.ts';
import { countPending, isFinalized, type Run } from './run.ts';

/**
 * The result of a finalized run, and its exit code. This is the only rule for whether a run went well: archives, heartbeats, events, metrics and
 * pages use it, never a state or a count.
 *
 * well        every row needs no attention
 * left        some rows need attention
 * none_there  nothing shows that any id existed, without --expect-absent: the list, the resource or the API may be the wrong one
 * mismatch    the counters do not add up to the rows of the list
 */
export const conclusionExits = {
  well: 'OK',
  left: 'INCOMPLETE',
  none_there: 'INCOMPLETE',
  mismatch: 'INTERNAL',
} as const satisfies Record<string, ErrorCode>;

export type Conclusion = keyof typeof conclusionExits;

type Judged = Pick<Run, 'state' | 'rows' | 'ids' | 'counts' | 'expectAbsent' | 'tallied'>;

/** Judges a run in any state; null until it is finalized. Pure. */
export function judgeRun(run: Judged): Conclusion | null {
  if (!isFinalized(run.state)) return null;
  // Before `finalizeTally`, no counter includes the open cells of a cancelled run.
  if (countPending(run) !== 0) return run.state === 'cancelled' && !run.tallied ? 'left' : 'mismatch';
  if (isNoneThere(run)) return 'none_there';
  return sumOutcomes(run.counts, (outcome) => !isSuccess(outcome)) === 0 ? 'well' : 'left';
}

/** Whether a run has ended with exit code 0. */
export function wentWell(run: Judged): boolean {
  return judgeRun(run) === 'well';
}

function isNoneThere({ ids, counts, expectAbsent }: Judged): boolean {
  // After a crash, some absent ids can only be reported as gone_unconfirmed. At the end of a list, they are unknown.
  const mayBeMissing = (outcome: Outcome) => isGone(outcome) || isUncertain(outcome);
  const isPerhapsOurs = (outcome: Outcome) => isGone(outcome) && isUncertain(outcome);
  return sumOutcomes(counts, mayBeMissing) === ids && sumOutcomes(counts, isPerhapsOurs) < ids && !expectAbsent;
}

/** The problem of a whole run, to follow "it is completed, but"; '' if its counts already show the problem. */
export function conclusionText(conclusion: Conclusion | null): string {
  if (conclusion === 'mismatch') return 'its counts do not add up';
  return conclusion === 'none_there' ? 'nothing shows that any of its ids was there' : '';
}
