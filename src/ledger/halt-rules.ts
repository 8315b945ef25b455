import { codeOfStatus, isFailure, isGone, rankOf, type SentOutcome, sentOutcomes } from '../model/outcome.ts';
import { isWithin, type StatusRange } from '../model/status.ts';
import { noteAuditLua } from './audit.ts';
import type { IdState } from './cell.ts';
import type { HaltCode } from './run.ts';
import { refusals, refusalsInARow, unexpected } from './thresholds.ts';

/** The answers that halt a run, for people. */
export function describeHalts(): { halt: HaltCode; when: string; answer: string }[] {
  const when = `${refusalsInARow} ids in a row`;
  return [
    {
      halt: unexpected.halt,
      when: `${unexpected.count} ids`,
      answer: `${statusesIn(unexpected.statuses)} other than a success`,
    },
    ...refusals.map(({ halt, statuses }, i) => ({
      halt,
      when,
      answer: i === refusals.length - 1 ? `any other of ${statusesIn(statuses)}` : statusesIn(statuses),
    })),
  ];
}

function statusesIn(ranges: readonly StatusRange[]): string {
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ');
}

/** The number of ids with an outcome from which a share of failures (`--max-failures`) can halt a run. */
export const failuresAfter = 100;

/** Whether an id ended with an unexpected answer. The update script does the same in Lua. */
export function isUnexpected({ outcome, status }: IdState): boolean {
  return isFailure(outcome) && status !== null && isWithin(unexpected.statuses, status);
}

/** A Lua expression: whether a settled cell with this rank and code ended with an unexpected answer. The same as `isUnexpected`. */
export function isUnexpectedLua(rank: string, code: string): string {
  const failures = sentOutcomes.filter(isFailure).map((outcome) => `${rank} == ${rankOf(outcome)}`);
  const codes = unexpected.statuses.map(
    ([from, to]) => `${code} >= ${codeOfStatus(from)} and ${code} <= ${codeOfStatus(to)}`,
  );
  return `(${failures.join(' or ')}) and (${codes.join(' or ')})`;
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
