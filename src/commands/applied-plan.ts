import { ExpungeError } from '../errors.ts';
import { notePlan } from '../ledger/audit.ts';
import { isOver, isSealed, type Run } from '../ledger/run.ts';
import { confirmCode } from '../terminal/ask.ts';
import { type Invocation, reasonOf } from './command.ts';
import { isCodeOf, type SealedPlan } from './sealed-plan.ts';
import { type Session, whoAmI } from './session.ts';

/** A plan that is carried out; `sha256`: of its file. */
export type AppliedPlan = { plan: SealedPlan; sha256: string };

/** Throws USAGE for a code that is not that of the plan: it is another plan, or its file was edited. */
export function refuseCode({ sha256 }: AppliedPlan, code: string): void {
  if (isCodeOf(sha256, code)) return;
  throw new ExpungeError('USAGE', `the code ${code.trim() || '""'} is not that of this plan; nothing was sent`, {
    next: 'look which plan it is, and whether its file was edited since; expunge plan makes a new one',
  });
}

/** Throws GUARD if anything differs from the plan. */
export function refuseDrift(differences: readonly string[]): void {
  if (differences.length === 0) return;
  throw new ExpungeError('GUARD', `not as planned: ${differences.join(', ')}; nothing was sent`, {
    next: 'restore what was planned, or look at it as it is now: expunge plan',
  });
}

/** Returns when the code of the plan was given, by --code or typed. */
export async function confirmPlan(
  { options, stdin, stderr, env }: Invocation,
  applied: AppliedPlan,
  what: string,
): Promise<void> {
  const given = options.code as string | undefined;
  refuseCode(applied, given ?? (await confirmCode(what, { stdin, stderr, env, stdinIsData: false })));
}

/**
 * Throws GUARD where the plan was carried out already, or the list was run since it was made: an approval holds for one run. An unfinished run
 * of other rules is not that of the plan, either.
 */
export function refuseOtherRun({ plan, sha256 }: AppliedPlan, last: Run | null): void {
  if (last === null || (last.plan === sha256 && !isOver(last))) return;
  if (last.plan === sha256 || (isOver(last) && last.createdAt >= Date.parse(plan.planned_at)))
    throw new ExpungeError(
      'GUARD',
      `run ${last.id} of this list, made since the plan, is ${last.state}; nothing was sent`,
      {
        next: `see what became of it: expunge report ${last.id}; to delete the list again, make a new plan`,
      },
    );
  if (!isOver(last)) refuseDrift(otherRulesOf(last, plan));
}

/**
 * Throws GUARD where an order that is to make a run would act on one that is there: somebody may have paused it, or a guard halted it. The one
 * that an order of the same person left behind, before it was started, is completed.
 */
export function refuseKnownRun({ env, options }: Invocation, last: Run | null, applied: AppliedPlan | null): void {
  if (options.newRunOnly !== true || last === null) return;
  if (applied !== null && (isOver(last) || last.plan === applied.sha256)) return;
  const isUnstarted = last.state === 'preparing' || last.state === 'planned';
  if (isUnstarted && last.plan === '' && last.createdBy === whoAmI(env)) return;
  const isMoving = last.state === 'running' || last.state === 'cancelling';
  const going = isMoving
    ? `wait until run ${last.id} has ended, or cancel it first`
    : `resume or cancel run ${last.id} first`;
  const next = isSealed(last.state) ? `see what became of run ${last.id}; retry that run for what it left` : going;
  throw new ExpungeError('GUARD', `run ${last.id} of these ids is ${last.state}; no run was made`, { next });
}

function otherRulesOf(run: Run, { rules }: SealedPlan): string[] {
  const maxDeletes = run.maxDeletes === null ? '' : String(run.maxDeletes);
  const before = { canary: run.canaryOf, maxDeletes, maxFailures: run.maxFailures, onStatus: run.onStatus };
  const names = Object.keys(before) as (keyof typeof before)[];
  const others = names.filter((name) => before[name] !== (rules[name] ?? ''));
  if (run.expectAbsent && rules.expectAbsent !== 'true') others.push('expectAbsent' as never);
  return others.map((name) => `run ${run.id} of the same list has another ${name}`);
}

/** Records in the run, and in its audit trail, that it carries out the plan. Throws GUARD if another command made it with other rules meanwhile. */
export async function takeOver(
  invocation: Invocation,
  { redis }: Session,
  applied: AppliedPlan,
  run: Run,
): Promise<void> {
  const { env, options } = invocation;
  const { plan, sha256 } = applied;
  if (run.plan === sha256) return;
  refuseDrift(otherRulesOf(run, plan));
  const { planned_by, planned_at, approve_by } = plan;
  await notePlan(redis, run.id, {
    at: Date.now(),
    action: approve_by === null ? 'apply' : 'approve',
    by: 'operator',
    who: whoAmI(env),
    reason: reasonOf(options),
    plan: sha256,
    planned_by,
    planned_at,
  });
}
