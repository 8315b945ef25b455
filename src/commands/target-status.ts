import { namedTarget } from '../config/check-target.ts';
import { auditFacts, readTargetAudit } from '../ledger/audit.ts';
import { isLive, knownTargets } from '../ledger/known-targets.ts';
import { learnedStart, readPin, readTargetState } from '../limiter/read-target.ts';
import { readStops, stopAdvice, type TargetStops } from '../limiter/stop.ts';
import { paceOf, rateSetting } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
import type { RedisClient } from '../redis/client.ts';
import { nearestFirst } from '../suggest.ts';
import { auditText } from '../terminal/audit-text.ts';
import { paceText } from '../terminal/plan-text.ts';
import { missedText, orderLine, targetName } from '../terminal/stop-text.ts';
import { plainLine } from '../terminal/style.ts';
import { heldLines, pinText } from '../terminal/target-text.ts';
import type { Invocation } from './command.ts';
import { jsonLines } from './json-lines.ts';
import type { Session } from './session.ts';

const shownTargetActions = 5;

/** How a target stands: what stops or holds it, where its rate begins, and what was done to all of it. */
export async function targetStatus({ config, options, stdout }: Invocation, { redis }: Session): Promise<number> {
  const target = namedTarget(config);
  const [standing, trail] = await Promise.all([
    readStanding(redis, target, config.separateLimits),
    readTargetAudit(redis, target.fp),
  ]);
  const print = jsonLines(stdout, options.json);
  const names = { target: target.baseUrl, account: target.account };
  if (options.audit) for (const entry of trail) print('audit', { ...names, ...auditFacts(entry) });
  print('target', standingFacts(standing));
  if (!options.json) {
    const lines = [
      ...standingLines(standing),
      ...(await strangerLines(redis, standing, 'status')),
      ...auditText(options.audit ? trail : trail.slice(-shownTargetActions)),
    ];
    stdout.write(`${[`Target ${targetName(target)}`, ...lines].join('\n  ')}\n`);
  }
  return 0;
}

/** What is known of a target at a moment. */
export type Standing = Awaited<ReturnType<typeof readStanding>>;

export async function readStanding(redis: RedisClient, target: Target, separateLimits: boolean) {
  const reads = [readStops(redis, target.fp), readTargetState(redis, target.fp), readPin(redis, target.fp)] as const;
  const [stops, limiters, pin] = await Promise.all(reads);
  const scopes = separateLimits ? (['annotations', 'views'] as const) : (['all'] as const);
  return { target, stops, limiters, pin, learned: learnedStart(limiters, scopes, pin && paceOf(pin.rate)) };
}

/** What is told of a target that Redis knows nothing of, and which ones are live: most likely one of those was meant. */
export async function strangerLines(
  redis: RedisClient,
  { target, limiters }: Standing,
  verb: string,
): Promise<string[]> {
  if (limiters.length > 0) return [];
  const known = await knownTargets(redis);
  if (known.some(({ fp }) => fp === target.fp)) return [];
  const live = nearestFirst(known.filter(isLive), target);
  const words = 'nothing was ever sent there by way of this Redis';
  return [live.length > 0 ? `${words}; these are live:\n${missedText(verb, live)}` : words];
}

/** For `--json`. Times are ISO 8601. */
export function standingFacts({ target, stops, limiters, pin, learned }: Standing): Record<string, unknown> {
  const { baseUrl, account } = target;
  const time = (ms: number) => new Date(ms).toISOString();
  return {
    ...{ target: baseUrl, account, stop: stops.target },
    ...{ processes: stops.alive, stopped_processes: stops.processes.length, per_second: learned?.perSecond ?? null },
    pinned: pin && { ...pin, rate: rateSetting(pin.rate), at: time(pin.at) },
    limiters: limiters.map(({ scope, at, rate, advised, hold, outage }) => ({
      ...{ scope, per_second: rate, advised_per_second: advised },
      hold: hold && { reason: hold.reason, until: time(at + hold.leftMs) },
      outage: outage && { reason: outage.reason, since: time(outage.since) },
    })),
  };
}

export function standingLines({ target, stops, limiters, pin, learned }: Standing): string[] {
  const held = heldLines(limiters, Date.now());
  return [
    ...stopLines(stops, target),
    ...held,
    ...(held.length > 0 ? [`lift that: ${orderLine('target release', target)}`] : []),
    ...(pin === null ? [] : [pinText(pin)]),
    paceText(null, learned) || 'nothing is known of its limit yet',
  ];
}

function stopLines({ target: stop, processes }: TargetStops, target: Target): string[] {
  const all = [stop, ...processes].filter((stop) => stop !== null);
  return all.length === 0
    ? ['not stopped']
    : all.map((one) => plainLine(stopAdvice(one, orderLine('start-all', target))));
}
