import { count, plural } from '../format.ts';
import { countPending, type HaltCode, type Run } from '../ledger/run.ts';
import { findRule, isSet, type RuleName, ruleText } from '../ledger/run-rules.ts';
import { isFailure, sumOutcomes } from '../model/outcome.ts';

/** The rules that stop a run, each with the code of its halt. */
const brakes: readonly [RuleName, HaltCode][] = [
  ['maxFailures', 'max_failures'],
  ['canaryOf', 'canary'],
  ['maxDeletes', 'max_deletes'],
  ['stopAt', 'time_up'],
  ['maxActiveMs', 'time_up'],
];

/** What the brakes did to a rehearsed run, and so would do to the run: which of them stopped it, and which did not. Pure. */
export function brakeTexts(run: Run): string[] {
  const set = brakes.filter(([name]) => isSet(run, name));
  const stopping = run.halt === '' ? [] : set.filter(([, code]) => code === run.halt);
  const others = set.filter((brake) => !stopping.includes(brake)).map((brake) => flagText(run, brake));
  return [
    ...(run.halt === '' ? [] : [stopText(run, stopping.map((brake) => flagText(run, brake)).join(' '))]),
    ...(others.length === 0 ? [] : [`did not stop it: ${others.join(', ')}`]),
    ...(run.halt === '' && set.length === 0 ? ['no brake was set, and no rule of expunge stopped it'] : []),
  ];
}

/** `halted after 12 failures, with 400 of 1,000 ids settled: --max-failures 10`. */
function stopText(run: Run, flags: string): string {
  const failures = sumOutcomes(run.counts, isFailure);
  const settled = `${count(run.ids - countPending(run))} of ${plural(run.ids, 'ids')} settled`;
  return `${run.state} after ${plural(failures, 'failures')}, with ${settled}: ${flags || run.halt}`;
}

function flagText(run: Run, [name]: (typeof brakes)[number]): string {
  return `--${findRule(name).flag} ${ruleText(run, name)}`;
}
