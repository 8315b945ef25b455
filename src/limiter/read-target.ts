import { boundText, partsOfLimit, type Rate, rateFromStored } from '../model/rate.ts';
import { type RedisClient, readClock } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import type { Closed } from './learning/closed.ts';
import { knownRate, type TargetControl } from './learning/control.ts';
import { recallRate } from './learning/learn-rate.ts';
import type { LearnedRate } from './learning/learned-rate.ts';
import { knownLimit } from './learning/ramp.ts';
import { noRefusals } from './learning/refusals.ts';
import { forgivenOutageMs } from './outage.ts';
import { listQuotaUse, type QuotaUse, spentQuota } from './quotas.ts';
import { workPauseMs } from './script-fields.ts';

/** The state of the limiter of a target, for people. Rates are requests per second; times are ms since 1970 by the clock of Redis. */
export type TargetState = {
  at: number; // when this was read
  silentMs: number; // time for which no process has called, and none was expected to
  processes: number; // number of processes that want permits
  phase: LearnedRate['phase'] | '';
  rate: number; // the rate that is allowed now
  use: number; // the part of it that was sent in the last second, from 0 to about 1
  limitMet: number; // the rate that was refused last, or a guess of it; 0 = none yet
  limitFound: number; // the limit, once what is accepted and what is refused are close together; 0 = not yet
  learned: number | null; // the rate at which a new run begins, or the highest that was answered while none was refused; null = unknown yet
  lowAfter: LowAfter | null; // the last refusals, if that rate is less than half of what was once accepted per second; null = it is not
  ceiling: number | null; // the limit of the target; null = it has none per second
  advised: number | null; // the rate that the server's own headers leave
  inFlight: number; // requests at once, over the fleet
  isStarved: boolean; // whether permits wait for one of these requests to end
  /** Why nothing is sent for a known time. `since`: ms since 1970; null = not known. */
  hold: { kind: HoldKind; reason: string; leftMs: number; since: number | null } | null;
  /** Why single ids are sent as probes. `countsTries`: each now costs its id an attempt. */
  outage: { kind: Closed['kind']; reason: string; since: number; countsTries: boolean } | null;
  /** The time for which requests have been refused or failed and none was accepted; null = less than a quarter of an hour. */
  stalled: { since: number; ms: number } | null;
  /** Whether such a time ended because a request was accepted, not for lack of work. */
  isAccepting: boolean;
};

/** So many of the answers were refusals, the last of which came so long ago. */
export type LowAfter = { refused: number; answers: number; agoMs: number };

/** The kind of hold: the server asked for a wait, or a quota of the limit is used up. */
type HoldKind = 'retry_after' | 'limit';

const stalledMs = 900_000;

const silentAfterMs = 5_000;

/** Whether no process works on the target any more: each would call at least once a second, or as it announced. The last state may be out of date. */
export function isSilent({ silentMs }: TargetState): boolean {
  return silentMs >= silentAfterMs;
}

/** The limit that an operator has set for all requests to a target, how much of each quota is used, and when a used-up quota allows more; 0 = now. */
export type TargetLimit = {
  rate: Rate;
  who: string;
  reason: string;
  at: number;
  used: readonly number[];
  until: number;
};

/** A limit at one moment; `spent`: the quota that is used up. */
type LimitNow = {
  limit: TargetLimit | null;
  perSecond: number | null;
  quotas: readonly QuotaUse[];
  spent: QuotaUse | null;
};

/** Reads the limit of a target. Only reads. */
export async function readLimit(redis: RedisClient, fp: string): Promise<LimitNow & { now: number }> {
  const [bounds, slices, now] = await Promise.all([
    redis.hgetall(keys.bounds(fp)),
    redis.hgetall(keys.limitQuotas(fp)),
    readClock(redis, keys.bounds(fp)),
  ]);
  const { limit = '', limitBy: who = '?', limitReason: reason = '', limitAt = '0' } = bounds;
  const rate = rateFromStored(limit);
  const quotas = listQuotaUse({ limit, slices }, now);
  const spent = spentQuota(quotas, now);
  const used = quotas.map((quota) => quota.used);
  const found = rate && { rate, who, reason, at: Number(limitAt), used, until: spent?.until ?? 0 };
  return { limit: found, perSecond: partsOfLimit(rate).perSecond, quotas, spent, now };
}

/** Reads the limiter of a target; null if nothing was ever sent to it. Only reads, in one round trip. */
export async function readTargetState(redis: RedisClient, fp: string): Promise<TargetState | null> {
  const [limit, limiter, members] = await Promise.all([
    readLimit(redis, fp),
    redis.hgetall(keys.limiter(fp)),
    redis.hgetall(keys.limiterMembers(fp)),
  ]);
  return toTargetState(limiter, members, limit.now, limit);
}

/**
 * The rate at which a run would begin, and how long ago the last answer came. `isCapped`: it is what the limit of the target allows. `wasRefused`: the
 * API refused a higher rate; if not, the rate is the highest that was answered. `lowAfter`: see `TargetState`.
 */
export type LearnedStart = {
  perSecond: number;
  silentMs: number;
  isCapped: boolean;
  wasRefused: boolean;
  lowAfter: LowAfter | null;
};

/** Reads the same from Redis. Only reads. */
export async function readStart(redis: RedisClient, fp: string): Promise<LearnedStart | null> {
  const [limiter, { perSecond }] = await Promise.all([readTargetState(redis, fp), readLimit(redis, fp)]);
  return learnedStart(limiter, perSecond);
}

/** The learned rate of a limiter, or the limit of its target, per second, if that is lower; null if neither is known. Pure. */
export function learnedStart(limiter: TargetState | null, limit: number | null = null): LearnedStart | null {
  const learned = limiter?.learned ?? null;
  if (limiter === null || learned === null)
    return limit === null ? null : { perSecond: limit, silentMs: 0, isCapped: true, wasRefused: false, lowAfter: null };
  const isCapped = limit !== null && learned >= limit;
  return {
    perSecond: Math.min(learned, limit ?? learned),
    silentMs: limiter.silentMs,
    isCapped,
    wasRefused: limiter.limitMet > 0,
    lowAfter: isCapped ? null : limiter.lowAfter,
  };
}

type Hash = Record<string, string>;

/** Parses the two hashes of a limiter (see target.lua.ts); null if there is none. Pure. */
export function toTargetState(
  limiter: Hash,
  members: Hash,
  now: number,
  { perSecond, spent }: Pick<LimitNow, 'perSecond' | 'spent'> = { perSecond: null, spent: null },
): TargetState | null {
  if (limiter.seenAt === undefined) return null;
  const number = (field: string) => Number(limiter[field] ?? 0);
  const known = learnedOf(limiter.state);
  const silentMs = Math.max(0, now - Math.max(number('seenAt'), number('callsBy')));
  const fleet = fleetOf(members, number('seenAt'));
  return {
    at: now,
    silentMs,
    processes: fleet.processes,
    phase: (limiter.phase ?? '') as TargetState['phase'],
    rate: Math.min(number('rate'), perSecond ?? Number.POSITIVE_INFINITY),
    use: known && known.rate.demand.allowed > 0 ? known.rate.demand.sent / known.rate.demand.allowed : 1,
    limitMet: number('high'),
    limitFound: known === null ? 0 : knownLimit(knownRate(known)),
    lowAfter: known && lowAfter(known, silentMs, now),
    learned: known && startOf(knownRate(known), silentMs, now),
    ceiling: perSecond,
    advised: limiter.announced ? number('announced') : null,
    inFlight: Math.min(number('inFlight') || fleet.connections, fleet.connections || number('inFlight')),
    isStarved: known !== null && known.inFlight.window.starved > starvedShare * known.inFlight.window.reports,
    hold: holdOf(limiter, spent, now),
    outage: closedOf(limiter, now),
    stalled: stallOf(limiter, now),
    isAccepting: limiter.isAccepting === '1',
  };
}

/** The longer of two waits: the wait that the server asked for, and the wait for room in a quota. */
function holdOf({ holdUntil = '0', holdWhy = '', heldSince }: Hash, spent: QuotaUse | null, now: number) {
  const throttledMs = Math.max(0, Number(holdUntil) - now);
  const spentMs = spent === null ? 0 : spent.until - now;
  if (throttledMs === 0 && spentMs === 0) return null;
  const since = heldSince === undefined ? null : Number(heldSince);
  if (throttledMs >= spentMs) return { kind: 'retry_after' as const, reason: holdWhy, leftMs: throttledMs, since };
  return {
    kind: 'limit' as const,
    reason: `the limit of this target is used up (${boundText(spent!)})`,
    leftMs: spentMs,
    since,
  };
}

function closedOf(
  { closed = '', closedWhy = '', closedAt, outageSince = closedAt, holdUntil = '0' }: Hash,
  now: number,
): TargetState['outage'] {
  const kind = closed as Closed['kind'] | '';
  if (kind === '' || (kind === 'held' && Number(holdUntil) > now)) return null;
  const countsTries = now - Number(kind === 'held' ? holdUntil : closedAt) >= forgivenOutageMs;
  if (kind === 'held')
    return { kind, reason: 'the wait that the API asked for is over', since: Number(holdUntil), countsTries };
  return { kind, reason: closedWhy, since: Number(outageSince), countsTries };
}

function stallOf({ drySince, dryMs, dryAnswers, wantedAt }: Hash, now: number): TargetState['stalled'] {
  const [ms, answers, idleMs] = [Number(dryMs ?? 0), Number(dryAnswers ?? 0), now - Number(wantedAt ?? 0)];
  return ms < stalledMs || answers === 0 || idleMs > workPauseMs ? null : { since: Number(drySince), ms };
}

const starvedShare = 0.4;

/** The part of the stored state that people see. */
type Known = Pick<TargetControl, 'rate' | 'beforeCeiling' | 'refusals' | 'inFlight'>;

function learnedOf(json: string | undefined): Known | null {
  return json ? (JSON.parse(json) as Known) : null;
}

const recalledAfterMs = 60_000;

function startOf(known: LearnedRate, silentMs: number, now: number): number | null {
  if (known.low === 0) return null;
  if (known.high === 0) return Math.min(known.low, known.answered);
  return silentMs > recalledAfterMs ? recallRate(known, now).rate : known.rate;
}

const lowShare = 0.5;

function lowAfter(known: Known, silentMs: number, now: number): LowAfter | null {
  const { refused, answers, atMs } = known.refusals ?? noRefusals; // a state in an older form has none
  const rate = knownRate(known);
  const start = startOf(rate, silentMs, now) ?? 0;
  return refused === 0 || start >= lowShare * rate.answered ? null : { refused, answers, agoMs: now - atMs };
}

const forgottenAfterMs = 350;

/** The processes that wanted permits at the last call, and the connections of each. */
function membersOf(members: Hash, seenAt: number): [process: string, connections: number][] {
  return Object.entries(members).flatMap(([process, words]): [string, number][] => {
    const [, at, connections] = /^(\S+) (\d+)$/.exec(words) ?? [];
    return Number(at) > seenAt - forgottenAfterMs ? [[process, Number(connections)]] : [];
  });
}

/** The sums over all these processes. */
function fleetOf(members: Hash, seenAt: number) {
  const said = membersOf(members, seenAt);
  return { processes: said.length, connections: said.reduce((sum, [, connections]) => sum + connections, 0) };
}

/** Reads the number of requests at once that each process of a target has room for, if it has ids to send now. Only reads. */
export async function readConnections(redis: RedisClient, fp: string): Promise<Map<string, number>> {
  const [members, seenAt] = await Promise.all([
    redis.hgetall(keys.limiterMembers(fp)),
    redis.hget(keys.limiter(fp), 'seenAt'),
  ]);
  return new Map(membersOf(members, Number(seenAt ?? 0)));
}
