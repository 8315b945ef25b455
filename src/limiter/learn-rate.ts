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

/** After a minute or more of silence the target may have changed: goes on a little under what was learned. */
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
  return state.phase === 'seek' ? seek(state, seen) : ramp(state, openMs);
}

// ---- seek ----

/** Doubles once enough clean answers came. */
function seek(state: LearnedRate, seen: Observation): LearnedRate {
  const worthMs = Math.max(rules.seekMs, rules.seekLatencies * state.latencyMs);
  const enough = Math.max(rules.seekAnswers, (state.rate * worthMs) / 1000);
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

/** Each of these refusals makes all processes wait, so the limit is derived from few of them: by how far the ramp got. */
function endBlockedRamp(state: LearnedRate, seen: Observation): LearnedRate {
  const supposed = nextEarly(state, isKnown(state) ? state.early : state.early + state.short);
  const early = isKnown(state) ? supposed : Math.min(state.early, supposed);
  const share = acceptedShare(state.sampleWindow);
  const isDeep = state.cycleMs === 0 && state.rampedMs < rules.fallMs && share < rules.deepShare; // else a window ends
  const sustained = isKnown(state) ? withoutBurst(state, supposed) * acceptedRate(state.sampleWindow) : 0;
  const low = isDeep ? state.rate * Math.max(rules.deepest, share) : Math.max(sustained, limitOnRamp(state, supposed));
  const isHasty = low < state.from * rules.fallen;
  return settle(
    { ...state, early, short: supposed - early },
    seen,
    { low, high: low + (state.rate - low) * rules.doubt },
    isHasty,
  );
}

/** Whether requests stood still on their way, or at the server. They arrive at once then, and some are refused whatever the rate is. */
function areLate({ latencyMs }: LearnedRate, { latency: { count, sumMs } }: Observation): boolean {
  return latencyMs > 0 && count > 0 && sumMs / count > rules.lateFactor * latencyMs + rules.lateMs;
}

/** Whether refused requests are such. Rarely, and the more so the longer the wait: where a server is late because of the rate, it is too high. */
function areDelayed({ lateAtMs, excusedAtMs, cycleMs }: LearnedRate, seen: Observation): boolean {
  const restMs = Math.max(rules.excuseEveryMs, rules.excuseEveryWaits * waitLeftMs(seen));
  return cycleMs === 0 && seen.now - lateAtMs <= rules.lateForMs && seen.now - excusedAtMs >= restMs;
}

/** The same ramp, after the wait. */
function goOn(state: LearnedRate, seen: Observation): LearnedRate {
  return { ...step(state, state.rate, 'ramp', openFrom(seen)), excusedAtMs: seen.now };
}

/** The part of what was accepted on the ramp that a burst does not explain. */
function withoutBurst({ sampleWindow: { openMs } }: LearnedRate, early: number): number {
  return Math.min(rules.sustained, openMs / (openMs + burstMs(early)));
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
  if (cycleMs > 0) return false; // the end of a window, or soon nothing is accepted at all
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
  return startRamp(
    state,
    bounds,
    { refused: state.sampleWindow.refusedInAll, blockedMs: waitLeftMs(seen), isHasty },
    openFrom(seen),
    state.cycleMs,
  );
}

/** Whether a Retry-After is in force, or came and ended since the last update. */
function isBlocked(seen: Observation): boolean {
  return waitLeftMs(seen) > 0 || seen.blockedMs > 0;
}

/** When requests may be sent again. */
function openFrom(seen: Observation): number {
  return Math.max(seen.now, seen.blockedUntilMs);
}
