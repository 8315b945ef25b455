import { namedTarget } from '../config/check-target.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { isLive, type KnownTarget, knownTargets } from '../ledger/known-targets.ts';
import { forgetRate, type OperatorOrder, pinRate, releaseTarget, setBudget } from '../ledger/steer-target.ts';
import { acknowledgeLosses } from '../ledger/target-orders.ts';
import { parseRate, type Rate } from '../model/rate.ts';
import { nearestFirst } from '../model/suggest.ts';
import type { Target } from '../model/target.ts';
import { withRedis } from '../operations/session.ts';
import type { RedisClient } from '../redis/client.ts';
import { notReachedText, targetName } from '../terminal/stop-text.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { sayUnlessJson, warnOn, whoAmI } from './session.ts';
import {
  readTargetStatus,
  type TargetStatus,
  targetStatusFacts,
  targetStatusLines,
  unknownTargetLines,
} from './target-status.ts';

/** `target release`, `forget-rate`, `pin-rate`, `budget` and `acknowledge`: from any machine, for all processes of the target, within a second. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, args, config, env, options } = invocation;
  const target = namedTarget(config);
  const isBound = verb === 'target pin-rate' || verb === 'target budget';
  const rate = isBound ? readBound(verb, args[0] ?? '') : null;
  return withRedis(invocation, sayUnlessJson(invocation), async ({ redis }) => {
    const before = await readTargetStatus(redis, target, config.separateLimits);
    const mayBeNew = isBound || verb === 'target acknowledge'; // what was known of it may be what is lost
    if (before.limiters.length === 0 && !mayBeNew) throw unknownTarget(await knownTargets(redis), verb, target);
    const order = { who: whoAmI(env), reason: reasonOf(options), at: Date.now() };
    const warnings = isBound ? await unknownTargetLines(redis, before, `${verb} ${args[0]}`) : [];
    const isChanged = await orders[verb]!(redis, target.fp, order, rate);
    const after = await readTargetStatus(redis, target, config.separateLimits);
    return sayChanged(invocation, after, isChanged, warnings);
  });
}

/** Says what was done, and how the target is now. Returns the exit code. */
export function sayChanged(
  { verb, options, stdout, stderr, verbosity }: Invocation,
  after: TargetStatus,
  isChanged: boolean,
  warnings: readonly string[] = [],
): number {
  const [done, nothing] = messages[verb]!;
  const lines = [isChanged ? done : nothing, ...targetStatusLines(after, verbosity === 'quiet')];
  stderr.write(`${targetName(after.target)}: ${lines.join('\n  ')}\n`);
  warnOn(stderr, warnings);
  jsonLines(stdout, options.json)('target', { ...targetStatusFacts(after), changed: isChanged });
  return 0;
}

type Do = (redis: RedisClient, fp: string, order: OperatorOrder, rate: Rate | null) => Promise<boolean>;

const orders: Record<string, Do> = {
  'target release': releaseTarget,
  'target forget-rate': forgetRate,
  'target pin-rate': (redis, fp, order, rate) => pinRate(redis, fp, rate, order),
  'target budget': (redis, fp, order, rate) => setBudget(redis, fp, rate, order),
  'target acknowledge': acknowledgeLosses,
};

/** What is printed if something changed, and if nothing did. */
const messages: Record<string, [string, string]> = {
  'target release': [
    'released; its processes continue within a second',
    'nothing to release: no wait and no open circuit',
  ],
  'target forget-rate': ['forgotten; the rate is probed for again', 'there was no rate to forget'],
  'target pin-rate': ['changed; it takes effect within a second', 'unchanged'],
  'target budget': ['changed; it takes effect within a second', 'unchanged'],
  'target acknowledge': [
    'acknowledged; its workers are ready again within two seconds',
    'nothing to acknowledge: no data are known to be lost',
  ],
};

/** A budget, or a single rate; null for `none`. Throws USAGE, also for a pin with quotas: it has no single value to begin at. */
export function readBound(verb: string, text: string): Rate | null {
  if (text === 'none') return null;
  try {
    const rate = parseRate(text);
    if (rate.length === 1 || verb === 'target budget') return rate;
  } catch (error) {
    throw new ExpungeError('USAGE', `${messageOf(error)}; "none" ends it`);
  }
  throw new ExpungeError('USAGE', `expected one rate like 200/s, got "${text}"`, {
    next: 'for a quota over all runs of the target: expunge target budget 100000/day',
  });
}

/** Lists the live targets, one of which was most likely meant. */
export function unknownTarget(known: readonly KnownTarget[], verb: string, target: Target): ExpungeError {
  const live = nearestFirst(known.filter(isLive), target);
  const next = live.length > 0 ? `these are live:\n${notReachedText(verb, live)}` : 'no target is live in this Redis';
  return new ExpungeError('USAGE', `nothing was ever sent to ${targetName(target)} through this Redis`, { next });
}
