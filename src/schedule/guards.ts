import { count, plural } from '../format.ts';
import { adviceOnOdd, explainOdd, type ShapeProfile } from '../input/id-shapes.ts';
import { explainUnmatched, type ProtectFacts } from '../input/read-protected.ts';
import { explainEmptyList, explainExcess, unexpectedCount } from '../model/brakes.ts';
import { type ListGuardCode, parseStoredSettings, type Schedule } from './schedule.ts';

/** The facts of a list that the guards evaluate; `left`: ids that earlier occurrences left, `sends`: ids that a run of all this would send. */
export type ListFacts = ProtectFacts & {
  ids: number;
  sha256: string;
  shapes: ShapeProfile;
  left: number;
  sends: number;
};

/** The reason why a guard rejects a list: an operator must check it first. */
export type ListRejection = { guard: ListGuardCode; reason: string };

/** The number of earlier lists that the growth guard needs. */
const comparedFrom = 3;

/**
 * Why the list of a schedule is rejected, or null. A waived guard accepts this list. `--max-deletes` always applies, since an operator confirmed it.
 * `hasList`: false if the source has nothing, and only ids that earlier occurrences left are to be deleted. Pure.
 */
export function findRejection(list: ListFacts, schedule: Schedule, hasList = true): ListRejection | null {
  const { maxDeletes, expectCount, expectProtected, allowEmpty } = parseStoredSettings(schedule);
  const rejections = [
    checkMaxDeletes(list, maxDeletes ?? 0),
    hasList ? checkExpectedCount(list, expectCount) : null,
    hasList ? checkExpectedProtection(list, expectProtected) : null,
    checkProtected(list, schedule),
    hasList ? checkMatched(list, schedule) : null,
    hasList ? checkShapes(list, schedule) : null,
    hasList ? checkEmpty(list, allowEmpty) : null,
    hasList ? checkSame(list, schedule) : null,
    hasList ? checkGrowth(list, schedule) : null,
  ];
  return (
    rejections.find((found) => found !== null && (found.guard === 'too_many' || found.guard !== schedule.waived)) ??
    null
  );
}

/** Describes how the protected ids differ from last time; '' if they are the same. */
export function protectedChange({ protectedList: now }: ListFacts, { protectedList: before }: Schedule): string {
  if (now === null || before === null || now.sha256 === before.sha256) return '';
  return `the protected ids have changed: ${count(before.ids)} before, ${count(now.ids)} now`;
}

/** The rows of the last ten lists, newest first, with one more. */
export function withRows(before: readonly number[], rows: number): number[] {
  return [rows, ...before].slice(0, maxCompared);
}

const maxCompared = 10;

/** Checks the number of ids to be sent, including ids that earlier occurrences left. */
function checkMaxDeletes({ sends, left }: ListFacts, maxDeletes: number): ListRejection | null {
  const what = left === 0 ? 'the list holds' : 'the list and what earlier occurrences left hold';
  const reason = explainExcess(sends, { maxDeletes, isPartial: false }, what);
  return reason === null ? null : { guard: 'too_many', reason };
}

function checkExpectedCount({ ids }: ListFacts, expected: string | undefined): ListRejection | null {
  const reason = expected === undefined ? null : unexpectedCount(expected, ids);
  return reason === null ? null : { guard: 'unexpected_count', reason };
}

function checkExpectedProtection({ protected: rows }: ListFacts, expected: string | undefined): ListRejection | null {
  const reason =
    expected === undefined ? null : unexpectedCount(expected, rows, 'protected rows', '--expect-protected');
  return reason === null ? null : { guard: 'unexpected_count', reason };
}

/** Checks the size of a file of protected ids. Such a file normally grows; a file with fewer ids may be cut off. */
function checkProtected(
  { protectedList: now }: ListFacts,
  { protectedList: before, settings }: Schedule,
): ListRejection | null {
  if (before === null || (now?.ids ?? 0) >= before.ids) return null;
  const reason = `${settings.protect} holds ${plural(now?.ids ?? 0, 'protected ids')}, it held ${count(before.ids)}`;
  return { guard: 'protected', reason };
}

/** Checks the form of protected ids. Ids of another form protect nothing, and no one watches an occurrence to notice that. */
function checkMatched(list: ListFacts, schedule: Schedule): ListRejection | null {
  const { expectUnprotected, expectProtected } = parseStoredSettings(schedule);
  const isExpected = expectUnprotected || expectProtected !== undefined;
  const reason = isExpected ? null : explainUnmatched(list, 'each');
  return reason === null ? null : { guard: 'protected', reason: `${reason}; --expect-unprotected accepts that` };
}

/** Checks what the ids look like. A few that look unlike all others are most often something else. */
function checkShapes({ shapes }: ListFacts, schedule: Schedule): ListRejection | null {
  const reason = parseStoredSettings(schedule).allowMixedIds ? null : explainOdd(shapes);
  return reason === null ? null : { guard: 'odd_ids', reason: `${reason}; ${adviceOnOdd(shapes)}` };
}

function checkEmpty({ rows }: ListFacts, allowEmpty: boolean): ListRejection | null {
  const reason = explainEmptyList(rows, { allowEmpty });
  return reason === null ? null : { guard: 'empty', reason };
}

/** Checks for a repeated list. It is not a reason to stop if earlier occurrences have left ids: then only those ids are deleted. */
function checkSame(list: ListFacts, schedule: Schedule): ListRejection | null {
  if (list.left > 0 || !isSameAsLast(list, schedule)) return null;
  return { guard: 'same', reason: `the list is the same as last time, in run ${schedule.lastRun}` };
}

/**
 * Whether this is the list of the last run, which completed, and no one has accepted the list again. It may be the same after a run that was
 * cancelled, or that found none of its ids: such a run pauses the schedule, so an operator has looked at it.
 */
export function isSameAsLast(
  { rows, sha256 }: Pick<ListFacts, 'rows' | 'sha256'>,
  { lastSha256, lastState, lastConclusion, waived }: Schedule,
): boolean {
  const isDone = lastState === 'completed' && lastConclusion !== 'none_there';
  return rows > 0 && sha256 === lastSha256 && isDone && waived !== 'same';
}

function checkGrowth({ rows }: ListFacts, { rows: before, maxGrowth }: Schedule): ListRejection | null {
  if (before.length < comparedFrom) return null;
  const usual = medianOf(before);
  if (rows <= maxGrowth * usual) return null;
  const reason = `the list has ${count(rows)} rows, more than ${maxGrowth} × the usual ${count(usual)} (median of the last ${before.length})`;
  return { guard: 'growth', reason };
}

/** The median. If there are two middle values, the higher one, because there are no half rows. */
function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
}
