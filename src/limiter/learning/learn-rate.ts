import { evidence, type Stretch } from './evidence.ts';
import {
  acceptedRate,
  acceptedShare,
  isWellUsed,
  type LearnedRate,
  type Observation,
  seeMore,
  step,
  waitLeftMs,
} from './learned-rate.ts';
import { type Bounds, burstMs, limitOnRamp, meanOnRamp, nextEarly, noCost, rateOn, startRamp } from './ramp.ts';
import { rateRules as rules } from './rate-rules.ts';

/**
 * Learns the rate of a target that publishes none, from what all processes observed since the last update. Pure; the state is
 * plain JSON. Called about ten times a second, later does no harm. `ceiling` (requests a second) bounds the rate, never
 * what is known about the target.
 *
 * While a target refuses, the rate of what it accepts is its limit. So: seek (double) until the first refusal, measure what
 * is accepted, settle just under it and creep up again (ramp), at a known price. A Retry-After is a wait, not a new rate.
 */
export function learnRate(before: LearnedRate, seen: Observation, ceiling: number | null, cycleMs = 0): LearnedRate {
  const openMs = Math.max(0, seen.now - before.lookedAtMs - seen.blockedMs);
  const most = ceiling ?? rules.mostPerSecond;
  const lateAtMs = areLate(before, seen) ? seen.now : before.lateAtMs;
  const begun = openMs > rules.idleMs ? onlyAnswered(before, seen.now, ceiling) : before;
  const state = { ...seeMore(begun, seen, openMs), cycleMs, lateAtMs };
  const next = follow(state, seen, openMs, most);
  return { ...next, rate: Math.min(most, Math.max(rules.leastPerSecond, next.rate)) };
}

/** After a minute or more of silence the target may have changed: begins again a little under what was learned. */
export function recallRate(state: LearnedRate, now: number): LearnedRate {
  const fresh = { ...state, lookedAtMs: now };
  if (state.high === 0) {
    const low = Math.min(state.low, state.answered) * rules.recall;
    return step({ ...fresh, low }, low === 0 ? state.rate : Math.max(low, rules.startPerSecond), 'seek', now);
  }
  return startRamp(fresh, { low: state.low * rules.recall, high: state.high }, noCost, now);
}

/**
 * A seek doubles the rate after a few clean answers, so one that ended with its work believes in more than was ever answered. Until the target
 * has refused, the next work begins at what was answered, or where work begins if nothing is known.
 */
function onlyAnswered(state: LearnedRate, now: number, ceiling: number | null): LearnedRate {
  if (state.phase !== 'seek' || state.high > 0 || state.low === 0) return state;
  const low = Math.min(state.low, state.answered);
  return step({ ...state, low }, Math.max(low, ceiling ?? rules.startPerSecond), 'seek', now);
}

function follow(state: LearnedRate, seen: Observation, openMs: number, ceiling: number): LearnedRate {
  if (state.phase === 'measure' && state.rate > ceiling) return settleUnmeasured(state, seen); // it cannot be held any more
  if (state.phase === 'measure') return measure(state, seen);
  if (seen.currentRefused > 0) return state.phase === 'seek' ? endSeek(state, seen) : endRamp(state, seen);
  if (state.phase === 'seek' && state.rate < state.low) return { ...state, rate: state.low }; // a ceiling had lowered it
  if (!isWellUsed(state) || state.rate >= ceiling) return state;
  if (state.phase === 'seek' && isBlocked(seen)) return state; // a wait may be reported before the refusal that it came with
  return state.phase === 'seek' ? seek(state, seen) : ramp(state, openMs);
}

// ---- seek ----

/** Doubles once enough clean answers came. */
function seek(state: LearnedRate, seen: Observation): LearnedRate {
  const enough = Math.max(rules.seekAnswers, (state.rate * rules.seekMs) / 1000);
  if (state.sampleWindow.accepted < enough) return state;
  return step({ ...state, low: state.rate }, state.rate * rules.seekFactor, 'seek', seen.now);
}

function endSeek(state: LearnedRate, seen: Observation): LearnedRate {
  const isMeasurable = !isBlocked(seen) && state.rate >= rules.coarsePerSecond;
  return isMeasurable ? startMeasuring(state) : settleUnmeasured(state, seen);
}

// ---- measure ----

/** Holds the rate; what is accepted from the next moments on is the limit. */
function startMeasuring(state: LearnedRate): LearnedRate {
  return {
    ...state,
    phase: 'measure',
    sampleWindow: { ...state.sampleWindow, openMs: 0, allowed: 0, accepted: 0, refused: 0 },
  };
}

function measure(state: LearnedRate, seen: Observation): LearnedRate {
  const { sampleWindow } = state;
  if (isBlocked(seen)) return settleUnmeasured(state, seen);
  if (sampleWindow.openMs <= rules.settleMs)
    return { ...state, sampleWindow: { ...sampleWindow, accepted: 0, refused: 0 } };
  if (sampleWindow.openMs < rules.measureMs || sampleWindow.accepted + sampleWindow.refused < rules.measureAnswers)
    return state;
  if (sampleWindow.refused === 0) return { ...state, phase: state.high === 0 ? 'seek' : 'ramp' }; // it was not about the rate: goes on
  return settleOnShare(state, seen);
}

// ---- ramp ----

/** Creeps on. */
function ramp(state: LearnedRate, openMs: number): LearnedRate {
  const rampedMs = state.rampedMs + openMs;
  return { ...state, rampedMs, rate: rateOn(state, rampedMs) };
}

/** A refusal late in a ramp is the limit that was looked for; an early one may be its fall, or a leftover. */
function endRamp(state: LearnedRate, seen: Observation): LearnedRate {
  if (isBlocked(seen)) return areDelayed(state, seen) ? goOn(state, seen) : endBlockedRamp(state, seen);
  if (!isKnown(state)) return hasFallen(state) ? settleOnShare(state, seen, true) : state;
  const low = acceptedRate(state.sampleWindow);
  if (!isClimbing(state)) return settle(state, seen, { low, high: state.rate });
  // A window that is spent accepts nothing for a while, so nothing can be measured there.
  if (state.cycleMs > 0)
    return settle(state, seen, { low: Math.max(low, meanOnRamp(state, state.cycleMs)), high: state.rate });
  return state.rate >= rules.coarsePerSecond
    ? startMeasuring(state)
    : settle(state, seen, { low, high: state.rate }, true);
}

/** Each of these refusals makes all processes wait, so the limit is derived from few of them: by what was accepted, and how far the ramp got. */
function endBlockedRamp(state: LearnedRate, seen: Observation): LearnedRate {
  const share = acceptedShare(state.sampleWindow);
  const isDeep = state.cycleMs === 0 && state.rampedMs < rules.fallMs && share < rules.deepShare; // otherwise a window ends
  if (isDeep) return settleDeep(state, seen, state.rate * Math.max(rules.deepest, share));
  const earlyBefore = state.early + state.short;
  const supposed = nextEarly(state, isKnown(state) ? state.early : earlyBefore);
  const early = isKnown(state) ? supposed : Math.min(state.early, supposed);
  const { least, likely } = evidence(stretchOf(state, supposed));
  const shown = state.sampleWindow.isAfterRefusal ? least : 0; // otherwise a burst may have been ready
  const sure = hasFallenBelow(state.sure, state) ? shown : Math.max(rules.stillSure * state.sure, shown);
  const found = Math.max(isKnown(state) || isHeldBack(state) ? likely : 0, limitOnRamp(state, supposed));
  // Burst after burst does not explain that each ramp ends early: what is sure is nearer the limit than what a burst leaves.
  const isRefuted =
    earlyBefore >= (isKnown(state) ? rules.refutedKnown : 1) && supposed > earlyBefore && found > rules.refuted * sure;
  const next = { ...state, early, sure, short: supposed - early };
  return settleBlocked(next, seen, isRefuted ? sure : Math.max(sure, found), Math.max(sure, found));
}

/** Most requests right after a wait are refused: the limit has fallen, and nothing is sure. */
function settleDeep(state: LearnedRate, seen: Observation, low: number): LearnedRate {
  return settleBlocked({ ...state, sure: 0 }, seen, low, low);
}

/** `found`: what the limit seems to be; `high` is a part of the way from there to the rate that was refused. */
function settleBlocked(state: LearnedRate, seen: Observation, low: number, found: number): LearnedRate {
  const high = found + Math.max(0, state.rate - found) * rules.doubt;
  return settle(state, seen, { low, high }, low < state.from * rules.fallen);
}

/** Whether much less was sent than allowed, so that the ramp stood still. */
function isHeldBack({ rampedMs, sampleWindow }: LearnedRate): boolean {
  return sampleWindow.openMs - rampedMs >= rules.fallMs;
}

/** Whether less is accepted than that, a second: it was refused at a lower rate, or so much was sent and less was accepted. */
function hasFallenBelow(perSecond: number, { rate, sampleWindow }: LearnedRate): boolean {
  const sent = (sampleWindow.allowed * 1_000) / Math.max(1, sampleWindow.openMs);
  return rate <= perSecond || (sent >= perSecond && acceptedRate(sampleWindow) < perSecond);
}

/** What was accepted since the last refusal, and is answered by now. */
function stretchOf({ sampleWindow, latencyMs }: LearnedRate, early: number): Stretch {
  const { openMs, waitMs, acceptedInAll: accepted } = sampleWindow;
  return { openMs: Math.max(openMs / 2, openMs - latencyMs), waitMs, accepted, burstMs: burstMs(early) };
}

/** Whether requests stood still on their way, or at the server. They arrive at once then, and some are refused whatever the rate is. */
function areLate({ latencyMs }: LearnedRate, { latency: { count, sumMs } }: Observation): boolean {
  return latencyMs > 0 && count > 0 && sumMs / count > rules.lateFactor * latencyMs + rules.lateMs;
}

/** Whether refused requests are such. Rarely: if a server is late because of the rate, the rate is too high. */
function areDelayed({ lateAtMs, excusedAtMs, cycleMs }: LearnedRate, seen: Observation): boolean {
  const { now } = seen;
  return cycleMs === 0 && now - lateAtMs <= rules.lateForMs && now - excusedAtMs >= rules.excuseEveryMs;
}

/** The same ramp, after the wait. */
function goOn(state: LearnedRate, seen: Observation): LearnedRate {
  return { ...afterWait(step(state, state.rate, 'ramp', openFrom(seen)), seen), excusedAtMs: seen.now };
}

/** The ramp went on long enough to show what is accepted. */
function isKnown({ sampleWindow }: LearnedRate): boolean {
  return sampleWindow.openMs >= rules.knownMs && sampleWindow.accepted >= rules.knownAnswers;
}

/** The limit was not met where it was known: it rose, and what was accepted on the way says little about it. */
function isClimbing({ rampedMs, rampMs, climbMs }: LearnedRate): boolean {
  return rampedMs > rampMs + climbMs / 2;
}

function hasFallen({ cycleMs, sampleWindow: { openMs, accepted, refused } }: LearnedRate): boolean {
  if (cycleMs > 0 || accepted === 0) return false; // the end of a window, or soon nothing is accepted at all
  const answers = accepted + refused;
  return openMs >= rules.fallMs && answers >= rules.fallAnswers && refused >= rules.fallShare * answers;
}

// ---- new bounds ----

/** The accepted share of a rate that was too high is the limit; `high` stays near it. */
function settleOnShare(state: LearnedRate, seen: Observation, isHasty = false): LearnedRate {
  const low = state.rate * Math.max(rules.leastShare, acceptedShare(state.sampleWindow));
  return settle(state, seen, { low, high: Math.min(state.rate, low * rules.fallRoom) }, isHasty);
}

/** A wide guess when nothing can be measured: all processes wait, or too few answers come. */
function settleUnmeasured(state: LearnedRate, seen: Observation): LearnedRate {
  return settle(state, seen, { low: state.low || state.rate / 2, high: state.rate });
}

function settle(state: LearnedRate, seen: Observation, bounds: Bounds, isHasty = false): LearnedRate {
  const cost = { refused: state.sampleWindow.refusedInAll, blockedMs: waitLeftMs(seen), isHasty };
  return afterWait(startRamp(state, bounds, cost, openFrom(seen), state.cycleMs), seen);
}

/** The next sample window begins with the wait. */
function afterWait(state: LearnedRate, seen: Observation): LearnedRate {
  return { ...state, sampleWindow: { ...state.sampleWindow, isAfterRefusal: true, waitMs: waitLeftMs(seen) } };
}

/** Whether a Retry-After is in force, or came and ended since the last update. */
function isBlocked(seen: Observation): boolean {
  return waitLeftMs(seen) > 0 || seen.blockedMs > 0;
}

/** When requests may be sent again. */
function openFrom(seen: Observation): number {
  return Math.max(seen.now, seen.blockedUntilMs);
}
