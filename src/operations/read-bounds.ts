import {
  type LearnedStart,
  type LimiterScope,
  learnedStart,
  readBudget,
  readPin,
  readTargetState,
} from '../limiter/read-target.ts';
import { paceOf } from '../model/rate.ts';
import type { RedisClient } from '../redis/client.ts';
import type { Plan } from '../terminal/plan-text.ts';

/** What bounds the rate of a new run of a target. `isLimit`: a rate above the learned one was refused. */
export type TargetBounds = Pick<Plan, 'pin' | 'budget'> & { learned: LearnedStart | null; isLimit: boolean };

/** Of a target that nobody asked about. */
export const noBounds: TargetBounds = { learned: null, isLimit: false, pin: null, budget: null };

/** Reads what bounds the requests that these limiters admit. */
export async function readBounds(
  redis: RedisClient,
  fp: string,
  scopes: readonly LimiterScope[],
): Promise<TargetBounds> {
  const reads = [readTargetState(redis, fp), readPin(redis, fp), readBudget(redis, fp)] as const;
  const [targets, pin, budget] = await Promise.all(reads);
  const learned = learnedStart(targets, scopes, pin && paceOf(pin.rate));
  const known = targets.filter((target) => scopes.includes(target.scope) && target.learned !== null);
  return { learned, isLimit: known.length > 0 && known.every(({ limitMet }) => limitMet > 0), pin, budget };
}
