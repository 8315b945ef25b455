import { count, plural } from '../format.ts';
import { type HaltRule, ruleStatusesText } from '../ledger/halt-rules.ts';

/** Describes when a rule halts a run: `all of the first 20 ids, or over 10 % of the ids once there are 1,000`. */
export function describeHaltRule({ count: times, allOfFirst, percent }: HaltRule): string {
  const limits = [
    times && plural(times, 'ids'),
    allOfFirst && `all of the first ${allOfFirst} ids`,
    percent && `over ${percent.over} % of the ids once there are ${count(percent.after)}`,
  ];
  return limits.filter(Boolean).join(', or ');
}

/** Describes which answers a rule counts: `403`; `404, 410, unless --expect-absent`. */
export function describeHaltStatuses(rule: HaltRule): string {
  return `${ruleStatusesText(rule)}${rule.isAbsence ? ', unless --expect-absent' : ''}`;
}
