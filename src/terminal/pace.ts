import { asSentence, capital, count, duration, plural, rate, timeOfDay } from '../format.ts';
import type { Measures } from '../ledger/measures.ts';
import { type Cause, isInUse, type Standing, standingAdvice, standingText } from '../ledger/standing.ts';
import type { LowAfter, TargetState } from '../limiter/read-target.ts';
import { paceOf, type Rate } from '../model/rate.ts';
import { statusesText } from '../model/status.ts';
import { commandFor, type Target } from '../model/target.ts';
import type { ToType } from '../model/to-type.ts';
import { isFar, roundTripText } from '../redis/distance.ts';

/** The facts that decide the speed of a running run. */
export type Pace = {
  standings: readonly Standing[]; // the causes that hold it back
  advice: string; // what to do about the first cause, or about a low rate; '' = nothing
  limiter: TargetState | null; // of its target
  rate: Rate | null; // the rate of the run itself
  idleMs: number; // time in ms in which no id was settled
  silentMs: number | null; // time in ms in which no request was answered; null = not known
  inFlight: number | null; // requests that wait for an answer; null = not known
  redisMs: number; // the longest round trip to Redis of its processes; 0 = none is far
  at: number; // the current time, ms since 1970
};

/** One sentence about a running run: what it does now, how fast, and why not faster. Pure. */
export function describePace(pace: Pace): string {
  const { standings, advice, limiter, at } = pace;
  const [standing] = standings;
  const live = isInUse(limiter) ? limiter : null;
  const isOfTarget = standing === undefined || targetCauses.includes(standing.why);
  const sentence = standing ? heldText(standing, advice, at) : describeActivity(live, pace);
  return isOfTarget ? sinceAccepted(live, sentence) : sentence;
}

/** Causes that hold the limiter of a target. */
export const targetCauses: readonly Cause[] = ['limit', 'retry_after', 'circuit', 'outage'];

/** A standing in full sentences; a command at the end has no full stop. */
export function heldText(standing: Standing, advice: string, now: number): string {
  return `${asSentence(standingText(standing, now))}${advice && ` ${advice}`}`;
}

/** `Nothing was accepted for 20 min: waiting 30 s: …` */
function sinceAccepted(target: TargetState | null, sentence: string): string {
  if (!target?.stalled) return sentence;
  const rest = sentence.charAt(0).toLowerCase() + sentence.slice(1);
  return `Nothing was accepted for ${duration(target.stalled.ms)}: ${rest}`;
}

function describeActivity(live: TargetState | null, pace: Pace): string {
  const { rate, idleMs, silentMs, advice } = pace;
  const own = rate === null ? null : paceOf(rate);
  if (live?.hold) return `Waiting ${duration(live.hold.leftMs)}: ${live.hold.reason}.`;
  if (live?.outage) {
    const { reason, since } = live.outage;
    return `${capital(reason)} since ${timeOfDay(since, live.at)}; probing with one id from time to time.`;
  }
  if (isIdle(idleMs, live, own)) {
    if (silentMs !== null && silentMs >= idleMs) return describeSilence(live, pace, silentMs);
    return `${silentMs === null ? 'Deleting' : 'Retrying'}: no id was settled for ${duration(idleMs)}.`;
  }
  return live ? describeSending(live, own, advice) : 'Deleting.';
}

/** The activity while no request is answered: then nothing is retried. */
function describeSilence(live: TargetState | null, { inFlight, redisMs }: Pace, silentMs: number): string {
  const since = `for ${duration(silentMs)}`;
  if (inFlight) return `Waiting for the answers to ${plural(inFlight, 'requests')}: none came ${since}.`;
  const waitsFor = isFar(redisMs)
    ? `Redis, which is ${roundTripText(redisMs)} away`
    : live === null || live.processes === 0
      ? 'a process to take its ids'
      : 'permits from Redis';
  return `Waiting for ${waitsFor}: nothing was sent ${since}.`;
}

const minIdleMs = 5_000;
const idleAnswers = 5;

/** Whether no id is settled and no wait explains it. */
function isIdle(idleMs: number, live: TargetState | null, own: number | null): boolean {
  const slowest = Math.min(own ?? Number.POSITIVE_INFINITY, live?.rate ?? Number.POSITIVE_INFINITY);
  return idleMs >= Math.max(minIdleMs, (idleAnswers * 1_000) / slowest);
}

const fullUse = 0.75;

function describeSending(target: TargetState, own: number | null, advice: string): string {
  const asked = Math.min(own ?? Number.POSITIVE_INFINITY, target.ceiling ?? Number.POSITIVE_INFINITY);
  const allowed = Math.min(target.rate, target.advised ?? Number.POSITIVE_INFINITY);
  const isAdvised = target.advised !== null && target.advised <= 1.01 * target.rate;
  const isFull = target.use * target.rate >= fullUse * Math.min(asked, allowed);
  if (!isFull && target.isStarved) return `Deleting as fast as ${plural(target.inFlight, 'requests')} at once allow.`;
  const who = asked === own ? '--rate' : 'the limit of the target';
  if (!isFull) return `Deleting; ${asked <= allowed ? `${who} allows ${rate(asked)}` : describeBound(target)}.`;
  if (asked <= allowed) return `Deleting at ${rate(asked)}, as ${who} allows.`;
  if (isAdvised && allowed < 1) return 'Waiting: the server reports that nothing is left of its limit.';
  if (isAdvised) return `Deleting at ${rate(allowed)}: the server reports that its limit is almost used up.`;
  return describeLearning(target, advice);
}

/** The known bound if no rate is the bound, or too little was sent to know. */
function describeBound({ limitMet, limitFound }: TargetState): string {
  if (limitFound > 0) return `the limit is about ${rate(limitFound)}`;
  return limitMet > 0 ? 'looking for the limit' : 'no limit reached yet';
}

const nearBelow = 0.95;
const nearAbove = 1.01;

/** Compares the rate with the limit that was reached. Close to the limit, the search continues in small steps that are not shown. */
function describeLearning({ phase, rate: now, limitMet, limitFound, lowAfter }: TargetState, advice: string): string {
  if (phase === 'measure') return `Measuring the limit: the server throttles some requests at ${rate(now)}.`;
  if (lowAfter) return `Deleting at ${rate(now)}; ${refusedText(lowAfter)}: looking for more.${advice && ` ${advice}`}`;
  if (phase === 'seek' || limitMet === 0) return `Probing for the limit: ${rate(now)} so far.`;
  if (limitFound === 0) return `Looking for the limit: ${rate(now)} now, ${rate(limitMet)} was refused.`;
  const isNear = now >= nearBelow * limitFound && now <= nearAbove * limitFound;
  if (isNear) return `Deleting at ${rate(now)}; the limit is about ${rate(limitFound)}.`;
  return `Increasing: ${rate(now)}, last limit at ${rate(limitFound)}.`;
}

/** `2 of 583 requests were refused, the last 40 s ago` */
export function refusedText({ refused, answers, agoMs }: LowAfter): string {
  const were = refused === 1 ? 'was' : 'were';
  return `${count(refused)} of ${plural(answers, 'requests')} ${were} refused, the last ${duration(agoMs)} ago`;
}

/** What a person can do about the first cause, or about a low rate; '' = nothing. */
export function paceAdvice(
  { standings: [standing], limiter }: Pick<Pace, 'standings' | 'limiter'>,
  target: Pick<Target, 'baseUrl' | 'account'>,
  toType: ToType,
): string {
  return standing ? standingAdvice(standing, toType) : lowRateAdvice(limiter, target, toType);
}

/** The command that forgets a low rate, so that the limit is looked for anew; '' = the rate is not low. */
export function lowRateAdvice(
  low: { lowAfter: LowAfter | null } | null,
  target: Pick<Target, 'baseUrl' | 'account'>,
  toType: ToType,
): string {
  return low?.lowAfter ? `Forget it: ${commandFor(toType, 'target forget-rate', target)}` : '';
}

/** The speed of a run and what slowed it down. Rates are requests per second; null = not measured. */
type PaceSummary = {
  achieved: number | null; // requests that were not throttled, per second of deleting time
  allowed: number | null; // by the learned limit and --rate, on average; null also if a part of the time had no limit
  waitedMs: number; // part of the deleting time in which no request was allowed
  refused: number; // throttled requests
  refreshes: number; // token refreshes
  latencyMs: Measures['latencyMs'];
};

/**
 * Minimum share of the time in which the rate must have been limited for an average to be given. There is none, either, if the run exceeded it in a
 * short time without a limit.
 */
const minLimited = 0.9;

/** The summary of measures. `activeMs`: the deleting time. Processes measure in parallel, so shares of their time count, not sums. */
export function paceSummary(measures: Measures, activeMs: number): PaceSummary {
  const { requests, refused, refreshes, workMs, heldMs, limitedMs, latencyMs } = measures;
  const achieved = activeMs > 0 && requests > 0 ? ((requests - refused) / activeMs) * 1_000 : null;
  const allowed = limitedMs > 0 && limitedMs >= minLimited * workMs ? (measures.allowed / limitedMs) * 1_000 : null;
  return {
    achieved,
    allowed: allowed !== null && achieved !== null && achieved > allowed ? null : allowed,
    waitedMs: workMs > 0 ? (Math.min(heldMs, workMs) / workMs) * activeMs : 0,
    refused,
    refreshes,
    latencyMs,
  };
}

const minWaitMs = 500;

/** The pace of a run in at most two lines; none if nothing was sent. */
export function paceLines({ achieved, allowed, waitedMs, refused, refreshes, latencyMs }: PaceSummary): string[] {
  if (achieved === null) return [];
  const pace = [
    `${rate(achieved)}${allowed === null ? '' : ` of ${rate(allowed)} allowed`}`,
    waitedMs < minWaitMs ? '' : `waited ${duration(waitedMs)}`,
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
