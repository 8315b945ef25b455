import type { Invocation } from '../command.ts';

/**
 * `plan`: reads the list as `run` would, and seals the deletion. Sends nothing. With --output the plan is in a file for `apply`, which needs neither
 * a token nor Redis nor a server. Otherwise it waits in the inbox of Redis or of the server.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { options, config } = invocation;
  if (options.output !== undefined) {
    const { planInFile } = await import('./make-plan.ts');
    return planInFile(invocation, options.output);
  }
  const { leavePlan, leavePlanAtServer } = await import('./leave-plan.ts');
  return config.server === undefined ? leavePlan(invocation) : leavePlanAtServer(invocation);
}
