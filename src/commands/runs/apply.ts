import { requirePlanCode } from '../../operations/applied-plan.ts';
import { actionOfPlan, checkPlanned, refuseChangedFiles } from '../../operations/apply-plan.ts';
import { readPlanFile } from '../../operations/plan-file.ts';
import type { Invocation } from '../command.ts';
import { readCredentials } from '../credentials.ts';
import { toListAction } from '../session.ts';
import { refuseWorkerFlags, withNamedList } from './run.ts';

/** `apply`: makes the run of a sealed plan if nothing differs from the plan, then continues as `run` does. Repeating it resumes the run. */
export async function execute(given: Invocation): Promise<number> {
  const { args, options } = given;
  const applied = await readPlanFile(args[0]!);
  if (options.code !== undefined) requirePlanCode(applied, options.code);
  if (options.detach) refuseWorkerFlags(given);
  const { action, target } = actionOfPlan(toListAction(given), applied);
  const paths = applied.plan.input.map(({ name }) => name);
  const invocation = {
    ...given,
    args: paths,
    config: action.config,
    options: { ...options, reason: action.by.reason },
  };
  const credentials = readCredentials(invocation);
  await refuseChangedFiles(applied, paths);
  return withNamedList(invocation, paths, async (list) => {
    checkPlanned(action, applied, list);
    const { runList } = await import('./run-list.ts');
    return runList(invocation, { action, target, credentials, list, retries: null, applied });
  });
}
