import { ExpungeError } from '../errors.ts';
import type { List } from '../input/with-list.ts';
import { approverText, mayApprove, roleIn } from '../model/approver.ts';
import { describeOtherDefinitions } from '../model/resource.ts';
import type { Target } from '../model/target.ts';
import { type AppliedPlan, refuseDrift } from './applied-plan.ts';
import type { ListAction } from './list-action.ts';
import { sealFiles } from './make-plan.ts';
import { checkList, checkProtection } from './plan-list.ts';
import {
  isPartial,
  otherIds,
  otherRules,
  type SealedInput,
  type SealedPlan,
  type SealedSetting,
  withRules,
} from './sealed-plan.ts';
import { targetOfSettings } from './target-of-settings.ts';

/**
 * Settings about the protected ids of this machine. A kept plan may come from another machine with another name for their file: the ids themselves
 * are compared.
 */
const ofProtectFile: readonly SealedSetting[] = ['protect', 'protectColumn'];

/**
 * The action for a run with the rules of the plan, and its target. Throws GUARD if another person has to apply the plan, or the settings of the
 * action differ from it.
 */
export function actionOfPlan(given: ListAction, { plan, isKept }: AppliedPlan): { action: ListAction; target: Target } {
  refuseOtherPerson(plan, given);
  refuseDrift(describeOtherDefinitions(plan.resources ?? {}));
  const target = targetOfPlan(given, plan);
  const own = isKept ? ofProtectFile : [];
  refuseDrift(otherRules(plan, given.config, given.sources, own));
  const action: ListAction = {
    ...given,
    config: withRules(given.config, plan, own),
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
