import { ExpungeError } from '../errors.ts';
import { toInputOptions } from '../input/input-options.ts';
import { readProtected, toProtectFile } from '../input/read-protected.ts';
import type { List } from '../input/with-list.ts';
import { changeRules } from '../ledger/change-rules.ts';
import { readOpenIds } from '../ledger/protection.ts';
import type { Run } from '../ledger/run.ts';
import { givenRules } from '../ledger/run-rules.ts';
import { approverText, mayApprove, roleIn } from '../model/approver.ts';
import { describeOtherDefinitions } from '../model/resource.ts';
import type { Target } from '../model/target.ts';
import { visible } from '../model/visible.ts';
import type { RedisClient } from '../redis/client.ts';
import { type AppliedPlan, refuseDrift } from './applied-plan.ts';
import type { ListAction } from './list-action.ts';
import { checkList, checkUnseen } from './plan-list.ts';
import { isPartial, otherIds, otherRules, type SealedPlan, withRules } from './sealed-plan.ts';
import type { Session } from './session.ts';
import { refuseFixedRules } from './submit-run.ts';
import { targetOfSettings } from './target-of-settings.ts';

/**
 * The action for a run with the rules of the plan, and its target. Throws GUARD if another person has to apply the plan, or the settings of the
 * action differ from it.
 */
export function actionOfPlan(given: ListAction, { plan }: AppliedPlan): { action: ListAction; target: Target } {
  refuseOtherPerson(plan, given);
  refuseDrift(describeOtherDefinitions(plan.resources ?? {}));
  const target = targetOfPlan(given, { baseUrl: plan.target.base_url, account: plan.target.account });
  refuseDrift(otherRules(plan, given.config, given.sources));
  const action: ListAction = {
    ...given,
    config: Object.freeze({ ...withRules(given.config, plan), ...given.accepted }),
    options: { ...given.options, partial: isPartial(plan) },
    by: { ...given.by, reason: given.by.reason || plan.reason },
  };
  return { action, target };
}

/** Throws GUARD if the list holds other ids than the plan, and whatever refuses a list without a plan. */
export function checkPlanned(action: ListAction, { plan }: AppliedPlan, list: List): void {
  checkList(action, list.spool);
  checkUnseen(action, list.spool);
  refuseDrift(otherIds(plan, list));
}

/** The target of a plan, which the settings have to name as well. Throws USAGE and GUARD if they do not. */
export function targetOfPlan(given: ListAction, { baseUrl, account }: Pick<Target, 'baseUrl' | 'account'>): Target {
  const target = targetOfSettings(given, 'the plan', { baseUrl, account });
  const named = `${target.baseUrl}${target.account && ` as account ${target.account}`}`;
  if (target.baseUrl === baseUrl && target.account === account) return target;
  refuseDrift([`target ${named} instead of ${baseUrl}${account && ` as account ${account}`}`]);
  return target;
}

/** Throws GUARD if another person has to apply the plan. People give their own names, without proof. */
function refuseOtherPerson(
  { approve_by: approver, planned_by: planner }: Pick<SealedPlan, 'approve_by' | 'planned_by'>,
  { by: { who }, role }: Pick<ListAction, 'by' | 'role'>,
): void {
  if (approver === null || mayApprove(approver, planner, { who, role })) return;
  const name = approverText(approver);
  throw new ExpungeError('GUARD', `only ${name} may apply this plan of ${planner}, not ${who}; nothing was sent`, {
    next:
      roleIn(approver) === null
        ? `let ${name} apply it, under a login or an EXPUNGE_USER of that name`
        : `let ${name} apply it, but not ${planner}`,
  });
}

/**
 * Gives the unfinished run of a plan the rules that this action sets, such as a later start, as `run` gives them to a run that it resumes, and returns
 * the run as it is then. Throws GUARD if an id that is still open is protected by now, or if the run cannot have these rules. Repeating it changes
 * nothing.
 */
export async function continueApplied({ redis }: Pick<Session, 'redis'>, run: Run, action: ListAction): Promise<Run> {
  const given = givenRules(action);
  refuseFixedRules(run, given);
  await refuseProtectedSince(redis, run, action);
  return changeRules(redis, run, given, { at: Date.now(), by: 'operator', ...action.by });
}

/** Throws GUARD if the settings protect an open id of the run. Its list was read earlier, and ids may have been protected since. */
async function refuseProtectedSince(redis: RedisClient, run: Run, { config }: ListAction): Promise<void> {
  const file = toProtectFile(config);
  if (file === null) return;
  const kept = new Set<string>();
  for await (const ids of readProtected(file, toInputOptions(config))) for (const id of ids) kept.add(id);
  for await (const ids of readOpenIds(redis, run)) {
    const found = ids.find((id) => kept.has(id));
    if (found === undefined) continue;
    const words = `${visible(found)} of run ${run.id} would be deleted, but ${file.path} protects it; nothing was sent`;
    throw new ExpungeError('GUARD', words, {
      next: (toType) => `cancel the run, and make a new plan: ${toType('cancel', run.id)}`,
    });
  }
}
