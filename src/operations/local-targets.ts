import { forgetRate, releaseTarget, type SeenAuthor, setLimit, setMinGrace } from '../ledger/steer-target.ts';
import { acknowledgeLosses } from '../ledger/target-actions.ts';
import { knownTargets } from '../lookup/run-index.ts';
import type { RedisClient } from '../redis/client.ts';
import type { TargetAction } from './action.ts';
import type { TargetOperations } from './operations.ts';
import type { Session } from './session.ts';
import { start, startAll, stop, stopAll } from './stop-targets.ts';
import { readTargetRecord, readTargetStatus } from './target-status.ts';

/** Actions for targets in the Redis of this session. Loads only what a stop needs: it has to work within a second. */
export function localTargets({ redis }: Pick<Session, 'redis'>): TargetOperations {
  type Work = (redis: RedisClient, fp: string, by: SeenAuthor) => Promise<boolean>;
  const change = async ({ target, by, seen }: TargetAction & { seen?: number }, work: Work) => {
    const noted = { ...by, at: Date.now(), ...(seen !== undefined && { seen }) };
    const isChanged = await work(redis, target.fp, noted);
    return { isChanged, status: await readTargetStatus(redis, target) };
  };
  return {
    known: () => knownTargets(redis),
    status: (target) => readTargetStatus(redis, target),
    record: (target) => readTargetRecord(redis, target),
    stopAll: (action) => stopAll(redis, action),
    startAll: (action) => startAll(redis, action),
    stop: (action) => change(action, async () => (await stop(redis, action)).isChanged),
    start: (action) => change(action, async () => (await start(redis, action)).isChanged),
    release: (action) => change(action, releaseTarget),
    forgetRate: (action) => change(action, forgetRate),
    acknowledge: (action) => change(action, acknowledgeLosses),
    setLimit: (action) => change(action, (_, fp, by) => setLimit(redis, fp, action.limit, by)),
    setMinGrace: (action) => change(action, (_, fp, by) => setMinGrace(redis, fp, action.graceMs, by)),
  };
}
