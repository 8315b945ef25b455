import { capital, count, duration, plural, rate, timeOfDay } from '../format.ts';
import type { Measures } from '../ledger/measures.ts';
import { isSilent, type TargetState } from '../limiter/read-target.ts';
import { type Stop, stopAdvice } from '../limiter/stop.ts';
import { paceOf, quotasText, type Rate } from '../model/rate.ts';
import { statusesText } from '../model/status.ts';
import type { Waiting } from './snapshot.ts';

/** What decides how fast a running run goes. */
export type Pace = {
  startCommand: string; // lifts a stop
  stop: Stop | null; // until an operator ends it
  waiting: Waiting | null;
  targets: readonly TargetState[];
  inFlight: number | null; // of this process; null when the run is seen from another one
  rate: Rate | null; // the run's own
  quotaUntil: number; // when a quota of it that is spent has room again, ms since 1970; 0 = none is spent
  idleMs: number; // how long no id was settled
  nextTryAt: number | null; // when failed ids are retried, if nothing else is left to do; ms since 1970
  at: number; // now, ms since 1970
};

/** One sentence: what a running run does at this moment, how fast, and why not faster. Pure. */
export function describePace(pace: Pace): string {
  const { stop, targets } = pace;
  if (stop) return stopAdvice(stop, pace.startCommand);
  const live = liveOf(targets);
  const isStalled = live.length > 0 && live.every(({ stalled }) => stalled !== null);
  const whole = isStalled ? live.map((target) => ({ ...target, stalled: null })) : live;
  return sinceAccepted(isStalled ? live[0]! : null, describeActivity(pace, whole));
}

/** `Nothing was accepted for 20 min: waiting 30 s: …` */
function sinceAccepted(target: TargetState | null, sentence: string): string {
  if (!target?.stalled) return sentence;
  const rest = sentence.charAt(0).toLowerCase() + sentence.slice(1);
  return `Nothing was accepted for ${duration(target.stalled.ms)}: ${rest}`;
}

function describeActivity(pace: Pace, live: readonly TargetState[]): string {
  const { waiting, targets, inFlight, rate, quotaUntil, idleMs, nextTryAt, at } = pace;
  if (waiting) return describeWait(waiting);
  const own = rate === null ? null : paceOf(rate);
  if (inFlight === null && targets.every(isSilent))
    return 'No worker is processing this run; start one, or run the command again.';
  const held = live.find(({ hold, outage }) => hold !== null || outage !== null);
  if (live.length < 2 && held) return describeTarget(held, own);
  if (rate !== null && quotaUntil > 0) return describeQuota(rate, quotaUntil, at);
  const nextTryMs = nextTryAt === null ? 0 : nextTryAt - at;
  if (!held && nextTryMs > 0 && !isWaitForPermit(nextTryMs, own))
    return describeWait({ reason: nextTry, leftMs: nextTryMs });
  if (!held && isIdle(idleMs, live, own)) return `Retrying: no id was settled for ${duration(idleMs)}.`;
  if (live.length < 2) return live[0] ? describeTarget(live[0], own) : 'Deleting.';
  return live.map((target) => `${target.scope}: ${describeTarget(target, own)}`).join(' · ');
}

const nextTry = 'the ids left failed before and are retried then';

const longestPermitMs = 5_000;

/** At so low a rate, a chunk is returned until the next permit, or for this long: its ids have not failed. */
function isWaitForPermit(nextTryMs: number, own: number | null): boolean {
  return own !== null && 1_000 / own > longestPermitMs && nextTryMs <= longestPermitMs;
}

const leastIdleMs = 5_000;
const idleAnswers = 5;

/** No id is settled and no wait explains it: the ids left have failed and are retried, now or later. */
function isIdle(idleMs: number, live: readonly TargetState[], own: number | null): boolean {
  const slowest = Math.min(own ?? Number.POSITIVE_INFINITY, ...live.map((target) => target.rate));
  return idleMs >= Math.max(leastIdleMs, (idleAnswers * 1_000) / slowest);
}

/** The limiters in use. There are two if the resources have separate limits. */
function liveOf(targets: readonly TargetState[]): TargetState[] {
  const seen = targets.filter((target) => !isSilent(target) || target.hold !== null);
  const busy = seen.filter(({ processes }) => processes > 0);
  return busy.length > 0 ? busy : seen.slice(0, 1);
}

/** `leftMs` 0: the duration is unknown. */
function describeWait({ reason, leftMs, for: what }: Waiting): string {
  return `Waiting${what ? ` for ${what}` : ''}${leftMs > 0 ? ` ${duration(leftMs)}` : ''}: ${reason}.`;
}

function describeQuota(rate: Rate, until: number, now: number): string {
  return `Waiting: --rate allows no more until ${timeOfDay(until, now)} (${quotasText(rate)}).`;
}

function describeTarget(target: TargetState, own: number | null): string {
  const { hold, outage } = target;
  if (hold) return sinceAccepted(target, describeWait(hold));
  if (outage) return sinceAccepted(target, describeOutage(outage, target.at));
  return sinceAccepted(target, describeSending(target, own));
}

function describeOutage({ reason, since, countsTries }: NonNullable<TargetState['outage']>, now: number): string {
  const cost = countsTries ? 'each try now counts as an attempt' : 'no id fails because of it';
  return `${capital(reason)} since ${timeOfDay(since, now)}; probing with one id now and then, ${cost}.`;
}

const fullUse = 0.75;

function describeSending(target: TargetState, own: number | null): string {
  const asked = Math.min(own ?? Number.POSITIVE_INFINITY, target.ceiling ?? Number.POSITIVE_INFINITY);
  const allowed = Math.min(target.rate, target.advised ?? Number.POSITIVE_INFINITY);
  const isAdvised = target.advised !== null && target.advised <= 1.01 * target.rate;
  const isFull = target.use * target.rate >= fullUse * Math.min(asked, allowed);
  if (!isFull && target.isStarved) return `Deleting as fast as ${plural(target.inFlight, 'requests')} at once allow.`;
  if (!isFull) return `Deleting; ${describeBound(target, Math.min(asked, allowed) === asked ? asked : null)}.`;
  if (asked <= allowed)
    return `Deleting at ${rate(asked)}, as ${asked === target.pinned ? 'the target is pinned' : '--rate allows'}.`;
  if (isAdvised && allowed < 1) return 'Waiting: the server reports that nothing is left of its limit.';
  if (isAdvised) return `Deleting at ${rate(allowed)}: the server reports that its limit is almost used up.`;
  return describeLearning(target);
}

/** What is known if no rate is the bound, or too little was sent to know. */
function describeBound({ limitMet, pinned }: TargetState, asked: number | null): string {
  if (asked !== null)
    return asked === pinned ? `the target is pinned to ${rate(asked)}` : `--rate allows ${rate(asked)}`;
  return limitMet > 0 ? `the limit is about ${rate(limitMet)}` : 'no limit reached yet';
}

const nearBelow = 0.95;
const nearAbove = 1.01;

/** Compares the rate with the limit that was reached. Close to it, the search continues in small steps that are not shown. */
function describeLearning({ phase, rate: now, limitMet }: TargetState): string {
  if (phase === 'measure') return `Measuring the limit: the server throttles some requests at ${rate(now)}.`;
  if (phase === 'seek' || limitMet === 0) return `Probing for the limit: ${rate(now)} so far.`;
  const isNear = now >= nearBelow * limitMet && now <= nearAbove * limitMet;
  if (isNear) return `Deleting at ${rate(now)}; the limit is about ${rate(limitMet)}.`;
  return `Increasing: ${rate(now)}, last limit at ${rate(limitMet)}.`;
}

/** How fast a run was and what slowed it down. Rates are requests a second; null = not measured. */
type PaceSummary = {
  achieved: number | null; // without throttled requests, over the deleting time
  allowed: number | null; // by the learned limit and --rate, on average while there was one
  waitedMs: number; // part of the deleting time in which no request was allowed
  refused: number; // throttled requests
  refreshes: number; // of the token
  latencyMs: Measures['latencyMs'];
};

/** `activeMs`: the deleting time. Processes measure side by side, so shares of their time count, not sums. */
export function paceSummary(measures: Measures, activeMs: number): PaceSummary {
  const { requests, refused, refreshes, workMs, heldMs, allowed, limitedMs, latencyMs } = measures;
  return {
    achieved: activeMs > 0 && requests > 0 ? ((requests - refused) / activeMs) * 1_000 : null,
    allowed: limitedMs > 0 ? (allowed / limitedMs) * 1_000 : null,
    waitedMs: workMs > 0 ? (Math.min(heldMs, workMs) / workMs) * activeMs : 0,
    refused,
    refreshes,
    latencyMs,
  };
}

const leastWaitMs = 500;

/** The pace of a run in at most two lines; none if nothing was sent. */
export function paceLines({ achieved, allowed, waitedMs, refused, refreshes, latencyMs }: PaceSummary): string[] {
  if (achieved === null) return [];
  const pace = [
    `${rate(achieved)}${allowed === null ? '' : ` of ${rate(allowed)} allowed`}`,
    waitedMs < leastWaitMs ? '' : `waited ${duration(waitedMs)}`,
    refused === 0 ? '' : `${count(refused)} × ${statusesText('throttled')}`,
    refreshes === 0 ? '' : `token refreshed ${count(refreshes)} ×`,
  ].filter(Boolean);
  const latency = latencyMs && `Latency: p50 ${ms(latencyMs.p50)}, p95 ${ms(latencyMs.p95)}, p99 ${ms(latencyMs.p99)}`;
  return [`Pace: ${pace.join(' · ')}`, ...(latency === null ? [] : [latency])];
}

/** The pace of a run for `--json`. */
export function paceFacts({ achieved, allowed, waitedMs, refused, refreshes, latencyMs }: PaceSummary) {
  return {
    rate_achieved: achieved && tenths(achieved),
    rate_allowed: allowed && tenths(allowed),
    waited_seconds: Math.round(waitedMs) / 1_000,
    throttled: refused,
    token_refreshes: refreshes,
    latency_ms: latencyMs && { p50: tenths(latencyMs.p50), p95: tenths(latencyMs.p95), p99: tenths(latencyMs.p99) },
  };
}

function ms(latency: number): string {
  if (latency >= 9_950) return duration(latency);
  return `${latency < 10 ? tenths(latency) : count(Math.round(latency))} ms`;
}

function tenths(n: number): number {
  return Math.round(n * 10) / 10;
}
