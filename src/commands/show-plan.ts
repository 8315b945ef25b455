import { type Plan, planText } from '../terminal/plan-text.ts';
import { styleOf } from '../terminal/style.ts';
import type { Invocation } from './command.ts';

/** With --quiet the plan is shown only before a question: nobody can confirm a plan that is not shown. */
export function showPlan({ options, toType, stderr, verbosity }: Invocation, plan: Plan): void {
  const isAsked = options.yes !== true && options.confirm === undefined && options.code === undefined;
  if (verbosity !== 'quiet' || isAsked)
    stderr.write(`${planText({ ...plan, toType }, styleOf(stderr), stderr.columns || undefined)}\n`);
}
