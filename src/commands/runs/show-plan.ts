import { approverText } from '../../model/approver.ts';
import type { ToType } from '../../model/to-type.ts';
import { visibleLine } from '../../model/visible.ts';
import type { PlanAnswer } from '../../operations/kept-plan.ts';
import { type Plan, planText } from '../../terminal/plan-text.ts';
import { styleOf } from '../../terminal/style.ts';
import type { Invocation } from '../command.ts';

/** Shows the plan; with --quiet only if a question follows, because a plan that is not shown cannot be confirmed. */
export function showPlan({ options, toType, stderr, verbosity }: Invocation, plan: Plan): void {
  const isAsked = options.yes !== true && options.confirm === undefined;
  if (verbosity !== 'quiet' || isAsked) writePlan(stderr, plan, toType);
}

/** Writes a plan to a stream, as wide as its terminal. */
export function writePlan(out: NodeJS.WriteStream, plan: Plan, toType: ToType): void {
  out.write(`${planText({ ...plan, toType }, styleOf(out), out.columns || undefined)}\n`);
}

/** Writes a plan that waits, and who made it. */
export function writeWaiting({ toType }: Invocation, out: NodeJS.WriteStream, shown: PlanAnswer): void {
  const { plan, planned_by: planner, reason } = shown;
  writePlan(out, shown.record, toType);
  out.write(`Plan ${plan} of ${visibleLine(planner)} ${waitText(shown)}${reason && `: ${visibleLine(reason)}`}\n`);
}

/** How long a plan waits, and for whom: `waits for ben until 2026-11-27T16:02:11Z`. */
export function waitText({ approve_by: approver, expires_at: until }: PlanAnswer): string {
  return `waits${approver === null ? '' : ` for ${visibleLine(approverText(approver))}`} until ${until}`;
}
