import { type ErrorCode, exitCodes } from '../errors.ts';
import { isoTime } from '../format.ts';
import { labelsFrom } from '../model/labels.ts';
import { perOutcome } from '../model/outcome.ts';
import { rehearsalFacts } from '../model/rehearsal.ts';
import { conclusionExits, judgeRun } from './conclusion.ts';
import type { ListedRun } from './list-runs.ts';
import { resultsFacts } from './results.ts';
import { countPending, type HaltCode, isTimeUp, sumActiveMs } from './run.ts';
import { verificationFacts } from './verification.ts';

/** The last line of `--json`, with its keys in this order. */
export type Summary = ReturnType<typeof toSummary>;

/** The summary of a run. `exit`: its exit code, null until it ends; `now`: ms since 1970. Pure. */
export function toSummary(run: ListedRun, exit: number | null, now: number) {
  return {
    v: 1,
    type: 'summary',
    ...rehearsalFacts(run),
    run: run.id,
    state: run.state,
    reason: run.reason,
    rows: run.rows,
    pending: countPending(run),
    ...perOutcome((outcome) => run.counts[outcome]),
    protected_read: run.protectedRead,
    attempts: run.attempts,
    answers_with_body: run.bodies,
    seconds: Math.round(sumActiveMs(run, now)) / 1_000,
    exit,
    starts_at: run.startsAt > 0 ? isoTime(run.startsAt) : null,
    ...retryFacts(run),
    ...resultsFacts(run),
    verified: verificationFacts(run.verified),
  } as const;
}

/** A run as `runs --json` prints it: its summary, its submitter, its list and its target. Pure. */
export function listedFacts(run: ListedRun, now: number) {
  return {
    ...toSummary(run, toExitCode(run), now),
    target: run.baseUrl,
    account: run.account,
    files: run.files,
    note: run.note,
    labels: labelsFrom(run.labels),
    created_at: isoTime(run.createdAt),
    created_by: run.createdBy,
    started_at: run.startedAt > 0 ? isoTime(run.startedAt) : null,
    changed_at: run.changedAt > 0 ? isoTime(run.changedAt) : null,
    ended_at: run.endedAt > 0 ? isoTime(run.endedAt) : null,
  } as const;
}

/** The runs that share ids with this run, for `--json`. */
export function retryFacts({ retryOf, retriedBy }: Pick<ListedRun, 'retryOf' | 'retriedBy'>) {
  return { retry_of: retryOf || null, retried_by: retriedBy };
}

const haltExits: Record<HaltCode, ErrorCode> = {
  unexpected_answers: 'GUARD',
  wrong_endpoint: 'GUARD',
  forbidden: 'GUARD',
  refused: 'GUARD',
  all_absent: 'GUARD',
  max_failures: 'GUARD',
  canary: 'GUARD',
  max_deletes: 'GUARD',
  time_up: 'GUARD',
  halting_status: 'GUARD',
  credentials: 'CREDENTIALS',
  target_configuration: 'UNREACHABLE',
  target_unreachable: 'UNREACHABLE',
  ledger_lost: 'UNREACHABLE',
};

/** The exit code of a halted or finalized run, or of a run whose time is up; null in other states. For a finalized run see `judgeRun`. */
export function toExitCode(run: ListedRun): number | null {
  if (run.state === 'halted' || isTimeUp(run)) return exitCodes[run.halt === '' ? 'GUARD' : haltExits[run.halt]].exit;
  const conclusion = judgeRun(run);
  return conclusion && exitCodes[conclusionExits[conclusion]].exit;
}
