import { count, plural } from '../format.ts';
import { codeOfStatus, isFailure, isGone, rankOf, type SentOutcome, sentOutcomes } from '../model/outcome.ts';
import type { StatusRange } from '../model/status.ts';
import { noteAuditLua } from './audit.ts';
import type { IdState } from './cell.ts';
import type { HaltCode } from './run.ts';

/**
 * When answers of one kind halt a whole run. It counts ids that were settled since the run was last started, over all processes. Each limit that is
 * set halts the run.
 */
export type HaltRule = {
  halt: HaltCode;
  /** Statuses of ids that ended `failed` or `unknown`, as ranges that include both ends. */
  statuses: readonly StatusRange[];
  /** Whether successes are among these statuses. They never count. */
  hasSuccesses?: boolean;
  /** Whether ids that ended `absent` count here, whatever their status. */
  isAbsence?: boolean;
  /** Number of ids at which the run halts. */
  count?: number;
  /** Number of ids in a row at which a process halts the run, before they are settled; see `delete/absence.ts`. */
  inARow?: number;
  /** Number N: halts if the first N ids are all counted. */
  allOfFirst?: number;
  /** Halts if more than `over` percent of the ids are counted, once there are at least `after` ids. */
  percent?: { over: number; after: number };
  /** The reason and the advice. {count} and {total} are replaced with the numbers, {statuses} with the statuses. */
  reason: string;
};

/** Whether a rule counts an id with this outcome. The update script does the same in Lua. */
export function counts({ statuses, isAbsence }: HaltRule, { outcome, status }: IdState): boolean {
  if (outcome === 'absent') return isAbsence === true;
  return isFailure(outcome) && statuses.some(([from, to]) => status !== null && status >= from && status <= to);
}

/** Writes the statuses of a rule for people: `405, 406, 501-505`. */
export function ruleStatusesText({ statuses }: HaltRule): string {
  return statuses.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ');
}

/** Describes when a rule halts a run: `all of the first 20 ids, or over 10 % of the ids once there are 1,000`; `50 ids in a row, or …`. */
export function describeHaltRule({ count: times, inARow, allOfFirst, percent }: HaltRule): string {
  const limits = [
    times && plural(times, 'ids'),
    inARow && `${inARow} ids in a row`,
    allOfFirst && `all of the first ${allOfFirst} ids`,
    percent && `over ${percent.over} % of the ids once there are ${count(percent.after)}`,
  ];
  return limits.filter(Boolean).join(', or ');
}

/** Describes the answers that a rule counts: `403`; `200-399 other than a success`; `404, 410, unless --expect-absent`. */
export function describeHaltStatuses(rule: HaltRule): string {
  const except = rule.hasSuccesses ? ' other than a success' : '';
  return `${ruleStatusesText(rule)}${except}${rule.isAbsence ? ', unless --expect-absent' : ''}`;
}

const codes = 512;
const never = 1e15;

/**
 * A Lua table by rank, without the ranks that no rule counts. Each entry is a string with one digit for each code of a cell: the number of the rule
 * that counts it, from 1, or 0. The same as `counts` above.
 */
export function ruleOfCodeLua(rules: readonly HaltRule[]): string {
  const byStatus = new Array<number>(codes).fill(0);
  for (const [i, { statuses }] of rules.entries()) {
    for (const [from, to] of statuses) byStatus.fill(i + 1, codeOfStatus(from), codeOfStatus(to) + 1);
  }
  const absent = new Array<number>(codes).fill(ruleOfAbsence(rules));
  const counted = sentOutcomes.filter((outcome) => outcome === 'absent' || isFailure(outcome));
  const digits = (outcome: SentOutcome) => (outcome === 'absent' ? absent : byStatus).join('');
  return `{${counted.map((outcome) => `[${rankOf(outcome)}] = '${digits(outcome)}'`).join(', ')}}`;
}

/** The number of the rule that counts absent ids, or 0. */
export function ruleOfAbsence(rules: readonly HaltRule[]): number {
  return rules.findIndex(({ isAbsence }) => isAbsence) + 1;
}

/** Writes the rules as a Lua table; a missing limit becomes a limit that is never reached. */
export function haltRulesLua(rules: readonly HaltRule[]): string {
  return `{${rules.map(ruleLua).join(', ')}}`;
}

function ruleLua(rule: HaltRule): string {
  const { halt, count = never, allOfFirst = never, percent = { over: 100, after: never } } = rule;
  const reason = rule.reason.replace('{statuses}', ruleStatusesText(rule));
  const limits = `count = ${count}, first = ${allOfFirst}, over = ${percent.over}, after = ${percent.after}`;
  return `{halt = '${halt}', field = '${counterOf(rule)}', ${limits}, reason = ${JSON.stringify(reason)}}`;
}

/** The number of ids with an outcome from which a share of failures of any kind (`--max-failures`) can halt a run. */
export const failuresAfter = 100;

/**
 * A Lua expression: whether a share can be judged at `now` ids but could not at `before` ids. Then it may be over its limit even if the last ids
 * succeeded.
 */
export function reachesShareLua(rules: readonly HaltRule[], before: string, now: string): string {
  const samples = new Set([failuresAfter, ...rules.flatMap(({ percent }) => percent?.after ?? [])]);
  return [...samples].map((ids) => `${before} < ${ids} and ${now} >= ${ids}`).join(' or ');
}

/** The names of the rules' counters, as the inside of a Lua list. */
export function countersLua(rules: readonly HaltRule[]): string {
  return rules.map((rule) => `'${counterOf(rule)}'`).join(', ');
}

/** The field of the run record that counts the answers of a rule. */
function counterOf({ halt }: HaltRule): string {
  return `seen:${halt}`;
}

/**
 * Lua: the number of ids that failed or are unknown, also since the run was last started, or were gone; a pause or a halt by a guard. Needs
 * `activeTimeFunctions` and `changeFunction`.
 */
export const haltFunctions = `
local function sumOf(runKey, ...)
  local sum = 0
  for _, n in ipairs(redis.call('HMGET', runKey, ...)) do sum = sum + tonumber(n or '0') end
  return sum
end

local function failuresOf(runKey) return sumOf(runKey, ${fieldsOf(isFailure)}) end
local function goneOf(runKey) return sumOf(runKey, ${fieldsOf(isGone)}) end

local function failuresSinceStart(runKey)
  return failuresOf(runKey) - tonumber(redis.call('HGET', runKey, 'failuresAtStart') or '0')
end

local function stopByGuard(runKey, auditKey, action, state, code, reason)
  local now = redisTime()
  stopTime(runKey, now)
  redis.call('HSET', runKey, 'state', state, 'halt', code, 'reason', reason, 'by', 'guard', 'who', '', 'changedAt', now)
  noteChange(runKey, now)
  local entry = cjson.encode({at = now, action = action, by = 'guard', who = '', reason = reason, halt = code})
  ${noteAuditLua('auditKey', 'entry')}
end

local function halt(runKey, auditKey, code, reason)
  stopByGuard(runKey, auditKey, 'halt', 'halted', code, reason)
end
`;

/** The fields of the run record that count these outcomes, as the inside of a Lua list. */
function fieldsOf(isSuch: (outcome: SentOutcome) => boolean): string {
  const fields = sentOutcomes.filter(isSuch);
  return fields.map((outcome) => `'${outcome}'`).join(', ');
}
