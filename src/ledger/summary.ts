import { type ErrorCode, exitCodes } from '../errors.ts';
import { isGone, isSuccess, perOutcome, sumOutcomes } from '../model/outcome.ts';
import type { ListedRun } from './list-runs.ts';
import { activeMsOf, type HaltCode, isSealed, pendingOf } from './run.ts';

/** The last line of `--json`, with its keys in this order. `exit` is null until the run ends. */
export type Summary = ReturnType<typeof summaryOf>;

export function summaryOf(run: ListedRun, exit: number | null, now: number) {
  return {
    ...{ v: 1, type: 'summary', run: run.id, state: run.state, reason: run.reason },
    ...{ rows: run.rows, pending: pendingOf(run) },
    ...perOutcome((outcome) => run.counts[outcome]),
    ...{
      protected_read: run.protectedRead,
      attempts: run.attempts,
      seconds: Math.round(activeMsOf(run, now)) / 1_000,
      exit,
    },
  } as const;
}

const haltExits: Record<HaltCode, ErrorCode> = {
  unexpected_answers: 'GUARD',
  wrong_endpoint: 'GUARD',
  forbidden: 'GUARD',
  refused_input: 'GUARD',
  all_absent: 'GUARD',
  halting_status: 'GUARD',
  credentials: 'CREDENTIALS',
  target_configuration: 'UNREACHABLE',
  target_unreachable: 'UNREACHABLE',
  ledger_lost: 'UNREACHABLE',
};

/** The exit code of a run as it stands, or null while it can still go on by itself. */
export function exitOf(run: ListedRun): number | null {
  if (run.state === 'halted') return exitCodes[run.halt === '' ? 'GUARD' : haltExits[run.halt]].exit;
  if (!isSealed(run.state)) return null;
  return exitCodes[endOf(run)].exit;
}

function endOf(run: ListedRun): 'OK' | 'INCOMPLETE' | 'INTERNAL' {
  // The open cells of a cancelled run are in no counter before `sealTally`.
  if (pendingOf(run) !== 0) return run.state === 'cancelled' && !run.tallied ? 'INCOMPLETE' : 'INTERNAL';
  if (isNoneThere(run)) return 'INCOMPLETE';
  return sumOutcomes(run.counts, (outcome) => !isSuccess(outcome)) === 0 ? 'OK' : 'INCOMPLETE';
}

/** Whether not one id of a sealed run was there, and nobody expected that: it may have asked the wrong API. */
export function isNoneThere({ state, ids, counts, expectAbsent }: ListedRun): boolean {
  // After a crash some of what was never there can only be called gone_unconfirmed.
  return isSealed(state) && counts.absent > 0 && sumOutcomes(counts, isGone) === ids && !expectAbsent;
}
