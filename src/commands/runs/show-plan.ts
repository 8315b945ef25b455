import { type Plan, planText } from '../../terminal/plan-text.ts';
import { styleOf } from '../../terminal/style.ts';
import type { Invocation } from '../command.ts';

/** Shows the plan; with --quiet only if a question follows, because a plan that is not shown cannot be confirmed. */
export function showPlan({ options, toType, stderr, verbosity }: Invocation, plan: Plan): void {
  const isAsked = options.yes !== true && options.confirm === undefined && options.code === undefined;
  if (verbosity !== 'quiet' || isAsked)
    stderr.write(`${planText({ ...plan, toType }, styleOf(stderr), stderr.columns || undefined)}\n`);
}
