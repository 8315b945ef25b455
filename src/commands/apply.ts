import { readTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import { isSamePerson } from '../model/person.ts';
import type { Target } from '../model/target.ts';
import { refuseCode, refuseDrift } from './applied-plan.ts';
import type { Invocation } from './command.ts';
import { readCredentials, refuseWithoutBaseUrl } from './credentials.ts';
import { sealFiles } from './make-plan.ts';
import { checkList, checkProtection } from './plan.ts';
import { readPlanFile } from './plan-file.ts';
import { refuseOfWorkers, withNamedList } from './run.ts';
import { isPartial, otherIds, otherRules, type SealedInput, type SealedPlan, withRules } from './sealed-plan.ts';
import { whoAmI } from './session.ts';

/** `apply`: the run of a sealed plan, if nothing differs from it; then it goes the way of `run`. Repeating it resumes the run. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, env, config, sources, options } = invocation;
  const applied = await readPlanFile(args[0]!);
  const { plan } = applied;
  if (options.code !== undefined) refuseCode(applied, options.code as string);
  refuseOtherPerson(plan, whoAmI(env));
  if (options.detach) refuseOfWorkers(invocation);
  const target = targetOf(invocation, plan);
  refuseDrift(otherRules(plan, config, sources));
  const given = planned(invocation, plan);
  const credentials = options.sentByWorkers ? null : readCredentials(given);
  refuseDrift(otherInput(plan, await sealFiles(given.args)));
  return withNamedList(given, async (list) => {
    checkList(given, list.spool);
    checkProtection(given, list.spool);
    refuseDrift(otherIds(plan, list));
    const { runList } = await import('./run-list.ts');
    return runList(given, { target, credentials, list, retries: null, applied });
  });
}

/** The command as if it were `run` with the files and the rules of the plan. */
function planned(invocation: Invocation, plan: SealedPlan): Invocation {
  const { config, options } = invocation;
  const args = plan.input.map(({ name }) => name);
  return {
    ...invocation,
    args,
    config: withRules(config, plan),
    options: { ...options, reason: options.reason ?? plan.reason, partial: isPartial(plan) },
  };
}

/** The target of the settings, which has to be that of the plan: the token is sent to no address that only a file names. */
function targetOf({ config, env }: Invocation, plan: SealedPlan): Target {
  const { base_url: baseUrl, account } = plan.target;
  refuseWithoutBaseUrl(config, 'the plan', { baseUrl, account });
  const target = readTarget(config, env);
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

/** Throws GUARD where somebody else has to apply the plan. Names are what people say of themselves. */
function refuseOtherPerson({ approve_by: approver, planned_by: planner }: SealedPlan, who: string): void {
  if (approver === null || (isSamePerson(approver, who) && !isSamePerson(planner, who))) return;
  throw new ExpungeError(
    'GUARD',
    `this plan of ${planner} is for ${approver} to apply, not for ${who}; nothing was sent`,
    {
      next: `let ${approver} apply it, under a login or an EXPUNGE_USER of that name`,
    },
  );
}
