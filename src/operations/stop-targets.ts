import { type KnownTarget, noteTarget } from '../ledger/known-targets.ts';
import { type StopChange, startTarget, stopTarget } from '../ledger/steer-target.ts';
import { knownTargets } from '../lookup/run-index.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import type { StopResult } from '../terminal/stop-text.ts';
import type { TargetAction } from './action.ts';

/** An action to stop or start. `allAccounts`: applies it to all accounts of the base URL of the target that Redis knows. */
export type StopAction = TargetAction & { allAccounts: boolean };

/** What an action reached: the named target first; and the other known targets. */
export type Reached = { reached: StopResult[]; others: KnownTarget[] };

/** Stops all these targets. A target stays known while it is stopped. */
export async function stopAll(redis: RedisClient, { target, allAccounts, by }: StopAction): Promise<Reached> {
  const targets = allAccounts ? await accountsOf(redis, target) : [target];
  return reached(redis, targets, await Promise.all(targets.map((one) => stop(redis, { target: one, by }))));
}

export async function startAll(redis: RedisClient, { target, allAccounts, by }: StopAction): Promise<Reached> {
  const targets = allAccounts ? await accountsOf(redis, target) : [target];
  return reached(redis, targets, await Promise.all(targets.map((one) => start(redis, { target: one, by }))));
}

export async function stop(redis: RedisClient, { target, by }: TargetAction): Promise<StopChange> {
  const at = Date.now();
  const change = await stopTarget(redis, target.fp, { ...by, at });
  await noteTarget(redis, target, at);
  return change;
}

/** Lifts a stop. `seen`: the revision that the person was shown. */
export async function start(
  redis: RedisClient,
  { target, by, seen }: TargetAction & { seen?: number },
): Promise<StopChange> {
  return startTarget(redis, target.fp, { ...by, at: Date.now(), ...(seen !== undefined && { seen }) });
}

/** The named target, then those of all other accounts of its base URL that Redis knows of. */
async function accountsOf(redis: RedisClient, named: Target): Promise<Target[]> {
  const all = await knownTargets(redis);
  return [named, ...all.filter(({ baseUrl, fp }) => baseUrl === named.baseUrl && fp !== named.fp)];
}

/** Counts what an action reaches, after the stop has taken effect. */
async function reached(
  redis: RedisClient,
  targets: readonly Target[],
  changes: readonly StopChange[],
): Promise<Reached> {
  const known = await knownTargets(redis);
  const reached = targets.map((target, i) => {
    const { before, isChanged } = changes[i]!;
    return { before, isChanged, known: knownAs(target, known) };
  });
  return { reached, others: known.filter(({ fp }) => targets.every((target) => target.fp !== fp)) };
}

/** The target as Redis knows it; an unknown target has no runs and no processes. */
function knownAs(target: Target, known: readonly KnownTarget[]): KnownTarget {
  const stops = { target: null, processes: [], tokenless: [], alive: 0 };
  return known.find(({ fp }) => fp === target.fp) ?? { ...target, live: {}, stops };
}
