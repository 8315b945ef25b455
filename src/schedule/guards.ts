import { count, plural } from '../format.ts';
import type { ProtectedList } from '../input/spool.ts';
import type { GuardCode, Schedule } from './schedule.ts';

/** What the guards look at. */
export type ListFacts = { rows: number; ids: number; sha256: string; protectedList: ProtectedList | null };

/** Why a list must not be deleted without somebody looking at it. */
export type ListRejection = { guard: GuardCode; reason: string };

/** So many lists say what is usual. */
const comparedFrom = 3;

/**
 * Why the list of a schedule is refused, or null. The guard that was waived lets this list pass; `--max-deletes` always holds: it is what
 * somebody confirmed.
 */
export function rejectionOf(list: ListFacts, schedule: Schedule, maxDeletes: number): ListRejection | null {
  const refusals = [
    checkMaxDeletes(list, maxDeletes),
    checkProtected(list, schedule),
    checkEmpty(list, schedule),
    checkSame(list, schedule),
    checkGrowth(list, schedule),
  ];
  return (
    refusals.find(
      (refusal) => refusal !== null && (refusal.guard === 'too_many' || refusal.guard !== schedule.waived),
    ) ?? null
  );
}

function checkMaxDeletes({ ids }: ListFacts, maxDeletes: number): ListRejection | null {
  if (ids <= maxDeletes) return null;
  return { guard: 'too_many', reason: `the list holds ${count(ids)} ids, --max-deletes allows ${count(maxDeletes)}` };
}

/** Ids are added to such a file now and then; one that was cut off looks like this. */
function checkProtected(
  { protectedList: now }: ListFacts,
  { protectedList: before, settings }: Schedule,
): ListRejection | null {
  if (before === null || (now?.ids ?? 0) >= before.ids) return null;
  const reason = `${settings.protect} holds ${plural(now?.ids ?? 0, 'protected ids')}, it held ${count(before.ids)}`;
  return { guard: 'protected', reason };
}

/** What to tell of protected ids that are others than last time; '' where they are the same. */
export function protectedChange({ protectedList: now }: ListFacts, { protectedList: before }: Schedule): string {
  if (now === null || before === null || now.sha256 === before.sha256) return '';
  return `the protected ids have changed: ${count(before.ids)} before, ${count(now.ids)} now`;
}

/** An export that went wrong looks like this. */
function checkEmpty({ rows }: ListFacts, { allowEmpty }: Schedule): ListRejection | null {
  return rows > 0 || allowEmpty ? null : { guard: 'empty', reason: 'the list is empty: 0 rows' };
}

/** Of a run that was cancelled the list may well be the same again. */
function checkSame({ rows, sha256 }: ListFacts, { lastRun, lastSha256, lastState }: Schedule): ListRejection | null {
  if (rows === 0 || sha256 !== lastSha256 || lastState !== 'completed') return null;
  return { guard: 'same', reason: `the list is the same as last time, that of run ${lastRun}` };
}

function checkGrowth({ rows }: ListFacts, { rows: before, maxGrowth }: Schedule): ListRejection | null {
  if (before.length < comparedFrom) return null;
  const usual = medianOf(before);
  if (rows <= maxGrowth * usual) return null;
  const reason = `the list has ${count(rows)} rows, more than ${maxGrowth} × the usual ${count(usual)} (median of the last ${before.length})`;
  return { guard: 'growth', reason };
}

/** Of an even number the higher one of the middle: half rows are none. */
function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
}

/** The rows of the last lists with one more, newest first. */
export function withRows(before: readonly number[], rows: number): number[] {
  return [rows, ...before].slice(0, comparedAtMost);
}

const comparedAtMost = 10;
