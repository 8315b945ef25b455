import { ExpungeError } from '../errors.ts';
import { type NotedPlan, notePlan } from '../ledger/audit.ts';
import type { BeforeStart } from '../ledger/create-run.ts';
import { isFinalized, isOver, type Run } from '../ledger/run.ts';
import { roleIn } from '../model/approver.ts';
import { isSamePerson } from '../model/person.ts';
import type { By } from './action.ts';
import type { ListAction } from './list-action.ts';
import type { SealedPlan } from './sealed-plan.ts';
import type { Session } from './session.ts';

/** A plan that is carried out. */
export type AppliedPlan = {
  id: string;
  plan: SealedPlan;
  /** Records that this run carries out the plan, before the run can start. Throws GUARD after another decision about the plan. */
  decide(run: string): Promise<void>;
};

/** Throws GUARD if anything differs from the plan. */
export function refuseDrift(differences: readonly string[]): void {
  if (differences.length === 0) return;
  throw new ExpungeError('GUARD', `this no longer matches the plan: ${differences.join(', ')}; nothing was sent`, {
    next: (toType) => `restore what was planned, or make a new plan: ${toType('plan')}`,
  });
}

/** Throws GUARD if the list was run since the plan was made: an approval is for one run. */
export function refuseRunSince({ plan }: AppliedPlan, last: Run | null): void {
  if (last === null || !isOver(last) || last.createdAt < Date.parse(plan.planned_at)) return;
  throw new ExpungeError(
    'GUARD',
    `run ${last.id} of this list, made since the plan, is ${last.state}; nothing was sent`,
    {
      next: (toType) => `see its outcomes: ${toType('report', last.id)}; to delete the list again, make a new plan`,
    },
  );
}

/**
 * Throws GUARD if an action that should make a run would act on an existing one, because a person may have paused it, or a guard halted it. A run
 * that an action of the same person left behind before it was started is completed.
 */
export function refuseKnownRun({ by, newRunOnly }: ListAction, last: Run | null, applied: AppliedPlan | null): void {
  if (!newRunOnly || last === null) return;
  if (applied !== null && (isOver(last) || last.plan === applied.id)) return;
  const isUnstarted = last.state === 'preparing' || last.state === 'planned';
  if (isUnstarted && last.plan === '' && last.createdBy === by.who) return;
  const isMoving = last.state === 'running' || last.state === 'cancelling';
  const going = isMoving
    ? `wait until run ${last.id} has ended, or cancel it first`
    : `resume or cancel run ${last.id} first`;
  const next = isFinalized(last.state)
    ? `see the outcomes of run ${last.id}; to send the ids that it left, retry that run`
    : going;
  throw new ExpungeError('GUARD', `run ${last.id} of these ids is ${last.state}; no run was made`, { next });
}

/**
 * What a new run records about the plan that it carries out. A person who sent a list to a server, and had it deleted, has submitted a run without
 * making a plan.
 */
export function recordedPlan(by: By, applied: AppliedPlan): NonNullable<BeforeStart['applied']> {
  const { id, plan } = applied;
  const isSubmission = plan.approve_by === null && isSamePerson(plan.planned_by, by.who);
  return { plan: id, approver: approverOf(plan, by), noted: isSubmission ? null : notedPlan(by, applied) };
}

/** The only person who may loosen the rules of the run; '' = anyone. If a role had to approve, that is whoever did. */
function approverOf({ approve_by: approver }: SealedPlan, { who }: By): string {
  if (approver === null) return '';
  return roleIn(approver) === null ? approver : who;
}

function notedPlan(by: By, { id, plan }: AppliedPlan): NotedPlan {
  const { planned_by, planned_at, approve_by } = plan;
  return {
    at: Date.now(),
    action: approve_by === null ? 'apply' : 'approve',
    ...by,
    by: 'operator',
    plan: id,
    planned_by,
    planned_at,
  };
}

/** Records, in a run that another action of the same person wrote, and in its audit trail, that the run carries out the plan. */
export async function takeOver(action: ListAction, { redis }: Session, applied: AppliedPlan, run: Run): Promise<void> {
  if (run.plan === applied.id) return;
  await applied.decide(run.id);
  await notePlan(redis, run.id, approverOf(applied.plan, action.by), notedPlan(action.by, applied));
}
