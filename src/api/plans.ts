import { type KeptPlan, readKeptPlan } from '../ledger/kept-plans.ts';
import type { Session } from '../operations/session.ts';
import { Problem } from './problem.ts';

/** The plan with this id, whatever has become of it. Throws not_found. */
export async function findPlan({ redis }: Pick<Session, 'redis'>, id: string): Promise<KeptPlan> {
  const plan = await readKeptPlan(redis, id);
  if (plan !== null) return plan;
  throw noPlan(id);
}

/** The problem for a plan that does not exist. */
export function noPlan(id: string): Problem {
  return new Problem('not_found', `Redis knows no plan "${id}"`, 'GET /api/v1/plans lists those that wait');
}
