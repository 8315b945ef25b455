import { namedTarget } from '../config/check-target.ts';
import { isoTime } from '../format.ts';
import { auditFacts, readTargetAudit } from '../ledger/audit.ts';
import { isLive, knownTargets } from '../ledger/known-targets.ts';
import { learnedStart, readBudget, readPin, readTargetState, scopesOf } from '../limiter/read-target.ts';
import { readStops, stopAdvice, stopFacts, type TargetStops } from '../limiter/stop.ts';
import { paceOf, rateSetting } from '../model/rate.ts';
import { nearestFirst } from '../model/suggest.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { paceText } from '../terminal/plan-text.ts';
import { commandFor, notReachedText, targetName } from '../terminal/stop-text.ts';
import { plainLine } from '../terminal/style.ts';
import { auditText, budgetText, pinText, throttleLines } from '../terminal/target-events.ts';
import { type Invocation, jsonLines } from './command.ts';

const shownActions = 5;

/** Shows the state of a target: stops, waits, open circuits, where its rate begins, and its audit trail. */
export async function targetStatus(invocation: Invocation, redis: RedisClient): Promise<number> {
  const { config } = invocation;
  const record = await readTargetRecord(redis, namedTarget(config), config.separateLimits);
  return showTarget(invocation, record, await unknownTargetLines(redis, record.status, 'status'));
}

/** What Redis holds of a target, and who did what to it: all that is shown. JSON keeps it as it is, as a `RunRecord`. */
export type TargetRecord = Awaited<ReturnType<typeof readTargetRecord>>;

export async function readTargetRecord(redis: RedisClient, target: Target, separateLimits: boolean) {
  const reads = [readTargetStatus(redis, target, separateLimits), readTargetAudit(redis, target.fp)] as const;
  const [status, trail] = await Promise.all(reads);
  return { status, trail };
}

/** Prints it. `unknown`: lines about a target that Redis does not know. */
export function showTarget(
  { options, stdout, verbosity }: Invocation,
  { status, trail }: TargetRecord,
  unknown: readonly string[],
): number {
  const { target } = status;
  const print = jsonLines(stdout, options.json);
  const names = { target: target.baseUrl, account: target.account };
  if (options.audit) for (const entry of trail) print('audit', { ...names, ...auditFacts(entry) });
  print('target', targetStatusFacts(status));
  if (!options.json) {
    const lines = [
      ...targetStatusLines(status, verbosity === 'quiet'),
      ...unknown,
      ...auditText(options.audit ? trail : trail.slice(-shownActions)),
    ];
    stdout.write(`${[`Target ${targetName(target)}`, ...lines].join('\n  ')}\n`);
  }
  return 0;
}

/** The state of a target at one moment. */
export type TargetStatus = Awaited<ReturnType<typeof readTargetStatus>>;

/** Reads it; a target that Redis does not know has no limiters. */
export async function readTargetStatus(redis: RedisClient, target: Target, separateLimits: boolean) {
  const { fp } = target;
  const reads = [readStops(redis, fp), readTargetState(redis, fp), readPin(redis, fp), readBudget(redis, fp)] as const;
  const [stops, limiters, pin, budget] = await Promise.all(reads);
  const learned = learnedStart(limiters, scopesOf({ separateLimits }), pin && paceOf(pin.rate));
  return { target, stops, limiters, pin, budget, learned };
}

/** Says that Redis does not know a target, and lists the live ones, one of which was most likely meant; none if it does. */
export async function unknownTargetLines(
  redis: RedisClient,
  { target, limiters }: TargetStatus,
  verb: string,
): Promise<string[]> {
  if (limiters.length > 0) return [];
  const known = await knownTargets(redis);
  if (known.some(({ fp }) => fp === target.fp)) return [];
  const live = nearestFirst(known.filter(isLive), target);
  const words = 'nothing was ever sent there through this Redis';
  return [live.length > 0 ? `${words}; these are live:\n${notReachedText(verb, live)}` : words];
}

/** The state of a target for `--json`. Times are ISO 8601. */
export function targetStatusFacts({
  target,
  stops,
  limiters,
  pin,
  budget,
  learned,
}: TargetStatus): Record<string, unknown> {
  const { baseUrl, account } = target;
  return {
    target: baseUrl,
    account,
    stop: stopFacts(stops.target),
    processes: stops.alive,
    stopped_processes: stops.processes.length,
    per_second: learned?.perSecond ?? null,
    pinned: pin && { ...pin, rate: rateSetting(pin.rate), at: isoTime(pin.at) },
    budget: budget && { ...budget, rate: rateSetting(budget.rate), at: isoTime(budget.at) },
    limiters: limiters.map(({ scope, at, rate, advised, hold, outage, stalled }) => ({
      scope,
      per_second: rate,
      advised_per_second: advised,
      hold: hold && { reason: hold.reason, until: isoTime(at + hold.leftMs) },
      outage: outage && { reason: outage.reason, since: isoTime(outage.since) },
      nothing_accepted_seconds: Math.floor((stalled?.ms ?? 0) / 1_000),
    })),
  };
}

/** The state of a target for people, a line each; unless `isQuiet`, with the command that ends a wait. */
export function targetStatusLines(
  { target, stops, limiters, pin, budget, learned }: TargetStatus,
  isQuiet: boolean,
): string[] {
  const held = throttleLines(limiters, Date.now());
  return [
    ...stopLines(stops, target),
    ...held,
    ...(held.length > 0 && !isQuiet ? [`release it: ${commandFor('target release', target)}`] : []),
    ...(pin === null ? [] : [pinText(pin)]),
    ...(budget === null ? [] : [budgetText(budget)]),
    paceText(null, learned) || 'its limit is not known yet',
  ];
}

function stopLines({ target: stop, processes }: TargetStops, target: Target): string[] {
  const all = [stop, ...processes].filter((stop) => stop !== null);
  return all.length === 0
    ? ['not stopped']
    : all.map((one) => plainLine(stopAdvice(one, commandFor('start-all', target))));
}
