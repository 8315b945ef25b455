import { knownTargets } from '../ledger/known-targets.ts';
import { forgetRate, pinRate, releaseTarget, type SeenOperatorOrder, setBudget } from '../ledger/steer-target.ts';
import { acknowledgeLosses } from '../ledger/target-actions.ts';
import type { RedisClient } from '../redis/client.ts';
import type { TargetOrder } from './action.ts';
import type { TargetOperations } from './operations.ts';
import type { Session } from './session.ts';
import { start, startAll, stop, stopAll } from './stop-targets.ts';
import { readTargetRecord, readTargetStatus } from './target-status.ts';

/** Orders for targets in the Redis of this session. Loads only what a stop needs: it has to work within a second. */
export function localTargets({ redis }: Pick<Session, 'redis'>, separateLimits: boolean): TargetOperations {
  type Work = (redis: RedisClient, fp: string, by: SeenOperatorOrder) => Promise<boolean>;
  const change = async ({ target, by, seen }: TargetOrder & { seen?: number }, work: Work) => {
    const noted = { ...by, at: Date.now(), ...(seen !== undefined && { seen }) };
    const isChanged = await work(redis, target.fp, noted);
    return { isChanged, status: await readTargetStatus(redis, target, separateLimits) };
  };
  return {
    known: () => knownTargets(redis),
    status: (target) => readTargetStatus(redis, target, separateLimits),
    record: (target) => readTargetRecord(redis, target, separateLimits),
    stopAll: (order) => stopAll(redis, order),
    startAll: (order) => startAll(redis, order),
    stop: (order) => change(order, async () => (await stop(redis, order)).isChanged),
    start: (order) => change(order, async () => (await start(redis, order)).isChanged),
    release: (order) => change(order, releaseTarget),
    forgetRate: (order) => change(order, forgetRate),
    acknowledge: (order) => change(order, acknowledgeLosses),
    pinRate: (order) => change(order, (_, fp, by) => pinRate(redis, fp, order.rate, by)),
    setBudget: (order) => change(order, (_, fp, by) => setBudget(redis, fp, order.rate, by)),
  };
}
