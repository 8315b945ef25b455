import { ExpungeError } from '../errors.ts';
import { type NotedPlan, notePlan } from '../ledger/audit.ts';
import { type BeforeStart, claimPlan, findRunOfPlan } from '../ledger/create-run.ts';
import { isFinalized, isOver, type Run } from '../ledger/run.ts';
import { findRule, givenRules, isSameRule, noRules, type RunRules, ruleNames } from '../ledger/run-rules.ts';
import { roleIn } from '../model/approver.ts';
import { isSamePerson } from '../model/person.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import type { By } from './action.ts';
import type { ListAction } from './list-action.ts';
import { isPlanCode, type SealedPlan, withRules } from './sealed-plan.ts';
import type { Session } from './session.ts';

/** A plan that is carried out. `sha256`: the hash of its file. */
export type AppliedPlan = {
  plan: SealedPlan;
  sha256: string;
  /** Whether Redis keeps the plan and its list. */
  isKept?: true;
  /** Records that this run carries out the kept plan, before the run can start. Throws GUARD after another decision about the plan. */
  decide?(run: string): Promise<void>;
};

/** Throws USAGE for a code that does not match the plan: it belongs to another plan, or the file was edited. */
export function requirePlanCode({ sha256 }: AppliedPlan, code: string): void {
  if (isPlanCode(sha256, code)) return;
  throw new ExpungeError('USAGE', `the code ${code.trim() || '""'} does not match this plan; nothing was sent`, {
    next: (toType) =>
      `check that this is the right file and was not edited since, or make a new plan: ${toType('plan')}`,
  });
}

/** Throws GUARD if anything differs from the plan. */
export function refuseDrift(differences: readonly string[]): void {
  if (differences.length === 0) return;
  throw new ExpungeError('GUARD', `this no longer matches the plan: ${differences.join(', ')}; nothing was sent`, {
    next: (toType) => `restore what was planned, or make a new plan: ${toType('plan')}`,
  });
}

/**
 * Throws GUARD if the plan was already carried out, or the list was run since it was made: an approval is for one run. An unfinished run with other
 * rules is not the run of the plan, either.
 */
export async function refuseOtherRun(
  { redis }: Pick<Session, 'redis'>,
  { fp }: Target,
  { plan, sha256 }: AppliedPlan,
  last: Run | null,
  action: Pick<ListAction, 'config'>,
): Promise<void> {
  if (last?.plan === sha256 && !isOver(last)) return;
  if (last !== null && (last.plan === sha256 || (isOver(last) && last.createdAt >= Date.parse(plan.planned_at))))
    throw new ExpungeError(
      'GUARD',
      `run ${last.id} of this list, made since the plan, is ${last.state}; nothing was sent`,
      {
        next: (toType) => `see its outcomes: ${toType('report', last.id)}; to delete the list again, make a new plan`,
      },
    );
  const run = await findRunOfPlan(redis, fp, sha256);
  if (run !== null) refuseSecondRun(run, last?.id);
  if (last !== null && !isOver(last)) refuseDrift(otherRulesOf(last, plan, action));
}

/** Throws GUARD if another run has carried out the plan, even if Redis no longer holds that run. */
function refuseSecondRun(carriedOutBy: string, run: string | undefined): void {
  if (carriedOutBy === run) return;
  throw new ExpungeError('GUARD', `run ${carriedOutBy} has carried out this plan; nothing was sent`, {
    next: 'to delete the list again, make a new plan',
  });
}

/**
 * Throws GUARD if an action that should make a run would act on an existing one, because a person may have paused it, or a guard halted it. A run
 * that an action of the same person left behind before it was started is completed.
 */
export function refuseKnownRun({ by, newRunOnly }: ListAction, last: Run | null, applied: AppliedPlan | null): void {
  if (!newRunOnly || last === null) return;
  if (applied !== null && (isOver(last) || last.plan === applied.sha256)) return;
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
 * The rules of the run that differ from the plan, in words. Ids that the plan expects to be absent do not count: from now on the run expects that.
 */
function otherRulesOf(run: Run, plan: SealedPlan, { config }: Pick<ListAction, 'config'>): string[] {
  const planned: RunRules = { ...noRules, ...givenRules({ config: withRules(config, plan) }) };
  const others = ruleNames.filter((name) => {
    const { plan: policy, resume, isLooser } = findRule(name);
    if (policy !== 'sealed') return false;
    return resume === 'add' ? isLooser(planned[name], run[name]) : !isSameRule(name, run, planned);
  });
  return others.map((name) => `run ${run.id} of the same list has a different --${findRule(name).flag}`);
}

/** Records that the run carries out the plan. Throws GUARD if another run does, or the plan was refused. Repeating it is harmless. */
export async function claimForRun(
  redis: RedisClient,
  { fp }: Pick<Target, 'fp'>,
  { sha256, decide }: AppliedPlan,
  id: string,
): Promise<void> {
  await decide?.(id);
  refuseSecondRun(await claimPlan(redis, fp, sha256, id), id);
}

/**
 * What a new run records about the plan that it carries out. A person who sent a list to a server, and had it deleted, has submitted a run without
 * making a plan.
 */
export function recordedPlan(by: By, applied: AppliedPlan): NonNullable<BeforeStart['applied']> {
  const { plan, sha256, isKept = false } = applied;
  const isSubmission = isKept && plan.approve_by === null && isSamePerson(plan.planned_by, by.who);
  return { plan: sha256, approver: approverOf(plan, by), noted: isSubmission ? null : notedPlan(by, applied) };
}

/** The only person who may loosen the rules of the run; '' = anyone. If a role had to approve, that is whoever did. */
function approverOf({ approve_by: approver }: SealedPlan, { who }: By): string {
  if (approver === null) return '';
  return roleIn(approver) === null ? approver : who;
}

function notedPlan(by: By, { plan, sha256 }: AppliedPlan): NotedPlan {
  const { planned_by, planned_at, approve_by } = plan;
  return {
    at: Date.now(),
    action: approve_by === null ? 'apply' : 'approve',
    ...by,
    by: 'operator',
    plan: sha256,
    planned_by,
    planned_at,
  };
}

/**
 * Records, in a run that another command made and in its audit trail, that the run carries out the plan. Throws GUARD if the run has other rules, or
 * if another run has carried out the plan.
 */
export async function takeOver(action: ListAction, { redis }: Session, applied: AppliedPlan, run: Run): Promise<void> {
  if (run.plan === applied.sha256) return;
  refuseDrift(otherRulesOf(run, applied.plan, action));
  await claimForRun(redis, run, applied, run.id);
  await notePlan(redis, run.id, approverOf(applied.plan, action.by), notedPlan(action.by, applied));
}
