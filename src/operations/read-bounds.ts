import { readMinGrace } from '../ledger/min-grace.ts';
import { type AroundTarget, readAround } from '../ledger/run-standings.ts';
import type { QuotaUse } from '../limiter/quotas.ts';
import { type LearnedStart, learnedStart, readLimit } from '../limiter/read-target.ts';
import type { Stop } from '../limiter/stop.ts';
import type { RedisClient } from '../redis/client.ts';
import { measureRoundTrip } from '../redis/distance.ts';
import { keys } from '../redis/keys.ts';
import type { Plan } from '../terminal/plan-text.ts';

/**
 * What bounds the rate of a new run of a target. `isLimit`: whether a rate above the learned one was refused. `perSecond` and `quotas`: the
 * parts of its limit. `redisMs`: see `Plan`.
 */
export type TargetBounds = Pick<Plan, 'limit' | 'minGrace'> & {
  perSecond: number | null;
  learned: LearnedStart | null;
  isLimit: boolean;
  quotas: readonly QuotaUse[];
  redisMs: number | null;
};

/** The bounds of a target that was not read. */
export const noBounds: TargetBounds = {
  learned: null,
  isLimit: false,
  limit: null,
  perSecond: null,
  minGrace: null,
  quotas: [],
  redisMs: null,
};

/** The surroundings of a target: its limiter, its stops, and the stop file of this process. */
export type Surroundings = AroundTarget & { ownStop: Stop | null };

/** The facts about a target before a run of it: the bounds of its rate, and the causes that hold it back. */
type BeforeRun = { bounds: TargetBounds; around: Surroundings };

/** Reads a target once for both. */
export async function readBeforeRun(redis: RedisClient, fp: string, ownStop: Stop | null): Promise<BeforeRun> {
  const [around, { limit, perSecond, quotas }, minGrace] = await Promise.all([
    readAround(redis, fp),
    readLimit(redis, fp),
    readMinGrace(redis, fp),
  ]);
  const redisMs = Number((await measureRoundTrip(redis, keys.limiter(fp))).toPrecision(3));
  const { limiter } = around;
  const learned = learnedStart(limiter, perSecond);
  const isLimit = limiter !== null && limiter.learned !== null && limiter.limitMet > 0;
  return { bounds: { learned, isLimit, limit, perSecond, minGrace, quotas, redisMs }, around: { ...around, ownStop } };
}
