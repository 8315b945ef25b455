import type { Fate } from './cell.ts';
import type { HaltCode } from './run.ts';

/**
 * When answers of one kind stop a whole run. What counts are ids that settled since the run was last started, over all processes.
 * Any of the limits that are given halts it.
 */
export type HaltRule = {
  halt: HaltCode;
  /** Statuses, both ends included, of ids that ended `failed` or `unknown`. */
  statuses: readonly (readonly [from: number, to: number])[];
  /** Ids that ended `absent` count here, whatever their status. */
  isAbsence?: boolean;
  /** So many of them. */
  count?: number;
  /** Every id so far, once there are so many. */
  allOfFirst?: number;
  /** More than so many of a hundred ids, once there are so many ids. */
  percent?: { over: number; after: number };
  /** What happened and what to do. {count} and {total} stand for the numbers, {statuses} for the statuses. */
  reason: string;
};

/** Whether a rule counts an id with this fate. The step script does the same in Lua. */
export function counts({ statuses, isAbsence }: HaltRule, { outcome, status }: Fate): boolean {
  if (outcome === 'absent') return isAbsence === true;
  if (outcome !== 'failed' && outcome !== 'unknown') return false;
  return statuses.some(([from, to]) => status !== null && status >= from && status <= to);
}

/** `405, 406, 501-505`. */
export function statusesText({ statuses }: HaltRule): string {
  return statuses.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ');
}
