import { type KeptPlan, listKeptPlans, readKeptPlan } from '../ledger/kept-plans.ts';
import type { Reach } from '../model/target.ts';
import type { Session } from '../operations/session.ts';
import { Problem } from './problem.ts';
import { listTargets } from './targets.ts';

/** The plan with this id, whatever has become of it. Throws not_found. */
export async function findPlan({ redis }: Pick<Session, 'redis'>, id: string): Promise<KeptPlan> {
  const plan = await readKeptPlan(redis, id);
  if (plan !== null) return plan;
  throw noPlan(id);
}

/** The plans in the inboxes of the targets within reach, the oldest first. */
export async function plansOf({ redis }: Pick<Session, 'redis'>, reach: Reach): Promise<KeptPlan[]> {
  return listKeptPlans(redis, await listTargets({ redis }, reach));
}

/** The problem for a plan that does not exist. */
export function noPlan(id: string): Problem {
  return new Problem('not_found', `Redis knows no plan "${id}"`, 'GET /api/v1/plans lists those that wait');
}
