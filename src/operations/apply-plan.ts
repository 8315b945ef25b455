import { ExpungeError } from '../errors.ts';
import type { List } from '../input/with-list.ts';
import { isSamePerson } from '../model/person.ts';
import type { Target } from '../model/target.ts';
import { type AppliedPlan, refuseDrift } from './applied-plan.ts';
import type { ListAction } from './list-action.ts';
import { sealFiles } from './make-plan.ts';
import { checkList, checkProtection } from './plan-list.ts';
import { isPartial, otherIds, otherRules, type SealedInput, type SealedPlan, withRules } from './sealed-plan.ts';
import { targetOfSettings } from './target-of-settings.ts';

/**
 * The action for a run with the rules of the plan, and its target. Throws GUARD if another person has to apply the plan, or the settings of the
 * action differ from it.
 */
export function actionOfPlan(given: ListAction, { plan }: AppliedPlan): { action: ListAction; target: Target } {
  refuseOtherPerson(plan, given.by.who);
  const target = targetOfPlan(given, plan);
  refuseDrift(otherRules(plan, given.config, given.sources));
  const action: ListAction = {
    ...given,
    config: withRules(given.config, plan),
    options: { ...given.options, partial: isPartial(plan) },
    by: { ...given.by, reason: given.by.reason || plan.reason },
  };
  return { action, target };
}

/** Throws GUARD if a file of the plan has changed since. */
export async function refuseChangedFiles({ plan }: AppliedPlan, paths: readonly string[]): Promise<void> {
  refuseDrift(otherInput(plan, await sealFiles([...paths])));
}

/** Throws GUARD if the list holds other ids than the plan, and whatever refuses a list without a plan. */
export function checkPlanned(action: ListAction, { plan }: AppliedPlan, list: List): void {
  checkList(action, list.spool);
  checkProtection(action, list.spool);
  refuseDrift(otherIds(plan, list));
}

function targetOfPlan(given: ListAction, plan: SealedPlan): Target {
  const { base_url: baseUrl, account } = plan.target;
  const target = targetOfSettings(given, 'the plan', { baseUrl, account });
  const named = `${target.baseUrl}${target.account && ` as account ${target.account}`}`;
  if (target.baseUrl === baseUrl && target.account === account) return target;
  refuseDrift([`target ${named} instead of ${baseUrl}${account && ` as account ${account}`}`]);
  return target;
}

function otherInput(plan: SealedPlan, now: readonly SealedInput[]): string[] {
  return plan.input
    .filter(({ bytes, sha256 }, i) => bytes !== now[i]!.bytes || sha256 !== now[i]!.sha256)
    .map(({ name }) => `${name} was changed`);
}

/** Throws GUARD if another person has to apply the plan. People give their own names, without proof. */
function refuseOtherPerson({ approve_by: approver, planned_by: planner }: SealedPlan, who: string): void {
  if (approver === null || (isSamePerson(approver, who) && !isSamePerson(planner, who))) return;
  throw new ExpungeError('GUARD', `only ${approver} may apply this plan of ${planner}, not ${who}; nothing was sent`, {
    next: `let ${approver} apply it, under a login or an EXPUNGE_USER of that name`,
  });
}
