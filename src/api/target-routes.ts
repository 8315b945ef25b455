import { z } from 'zod';
import { ExpungeError, messageOf } from '../errors.ts';
import { noteTarget } from '../ledger/known-targets.ts';
import { runIndexOf } from '../ledger/run-index.ts';
import {
  forgetRate,
  type OperatorOrder,
  pinRate,
  releaseTarget,
  setBudget,
  startTarget,
  stopTarget,
} from '../ledger/steer-target.ts';
import { acknowledgeLosses } from '../ledger/target-orders.ts';
import { parseRate, type Rate } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { targetFacts } from './overview.ts';
import { type Call, type Route, route } from './route.ts';
import { reason } from './run-routes.ts';
import * as shapes from './shapes.ts';
import { knownTargetOf } from './targets.ts';

type Change = (redis: RedisClient, target: Target, by: OperatorOrder) => Promise<boolean>;

const bound = z.string().min(1).max(200).nullable();
const changed = shapes.target.extend({ changed: z.boolean() });

/** What steers a target as a whole. */
export const targetRoutes: readonly Route[] = [
  simple('stop', 'send nothing to a target any more', stop),
  simple('start', 'end that', async (redis, { fp }, by) => (await startTarget(redis, fp, by)).isChanged),
  simple('release', 'end a wait that the server asked for, or an outage', (redis, { fp }, by) =>
    releaseTarget(redis, fp, by),
  ),
  simple('acknowledge', 'say that you have seen what Redis has lost of a target', (redis, { fp }, by) =>
    acknowledgeLosses(redis, fp, by),
  ),
  simple('forget-rate', 'learn the rate anew', (redis, { fp }, by) => forgetRate(redis, fp, by)),
  route({
    method: 'post',
    path: '/targets/{fp}/rate',
    role: 'operate',
    summary: 'pin the rate of a target',
    body: z.strictObject({ reason, rate: bound.describe('200/s; null = none any more') }),
    answer: changed,
    handle: (call) => {
      const rate = readBound(call.body.rate, true);
      return change(call, (redis, { fp }, by) => pinRate(redis, fp, rate, by));
    },
  }),
  route({
    method: 'post',
    path: '/targets/{fp}/budget',
    role: 'operate',
    summary: 'bound all that is sent to a target',
    body: z.strictObject({ reason, budget: bound.describe('100000/day; null = none any more') }),
    answer: changed,
    handle: (call) => {
      const budget = readBound(call.body.budget, false);
      return change(call, (redis, { fp }, by) => setBudget(redis, fp, budget, by));
    },
  }),
];

function simple(action: string, summary: string, work: Change): Route {
  return route({
    method: 'post',
    path: `/targets/{fp}/${action}`,
    role: 'operate',
    summary,
    body: z.strictObject({ reason }),
    answer: changed,
    handle: (call) => change(call, work),
  });
}

/** A target stays known while it is stopped. */
async function stop(redis: RedisClient, target: Target, by: OperatorOrder): Promise<boolean> {
  const { isChanged } = await stopTarget(redis, target.fp, by);
  await noteTarget(redis, target, by.at);
  return isChanged;
}

async function change({ deps, params, body, caller }: Call<unknown, { reason: string }>, work: Change) {
  const { session, config } = deps;
  const target = await knownTargetOf(session, params.fp!);
  const isChanged = await work(session.redis, target, { who: caller.name, reason: body.reason, at: Date.now() });
  const { active } = await runIndexOf(session.redis).read();
  return { ...(await targetFacts(session, target, config.separateLimits, active)), changed: isChanged };
}

/** Throws USAGE for what is no rate; a pin has no quotas. */
function readBound(text: string | null, isSingle: boolean): Rate | null {
  if (text === null) return null;
  try {
    const rate = parseRate(text);
    if (!isSingle || rate.length === 1) return rate;
  } catch (error) {
    throw new ExpungeError('USAGE', messageOf(error));
  }
  throw new ExpungeError('USAGE', `expected one rate like 200/s, got "${text}"`, { next: 'set a budget for quotas' });
}
