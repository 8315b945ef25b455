import { evidence, type Stretch } from './evidence.ts';
import {
  acceptedRate,
  acceptedShare,
  addObservation,
  isWellUsed,
  type LearnedRate,
  type Observation,
  step,
  waitLeftMs,
} from './learned-rate.ts';
import { type Bounds, burstMs, limitOnRamp, meanOnRamp, nextEarlyRamps, noCost, rateOn, startRamp } from './ramp.ts';
import { rateRules as rules } from './rate-rules.ts';

/**
 * Learns the rate of a target that publishes none, from the observations of all processes since the last update. Pure; the state is plain JSON.
 * Called about ten times a second; a later call does no harm. At the `ceiling` (requests per second) the rate does not rise; `control` bounds it.
 *
 * While a target refuses, its limit is the rate that it accepts. So the search has three phases. Seek doubles the rate until the first refusal.
 * Measure counts what is accepted. Ramp settles just under that rate and creeps up again, at a known price. A Retry-After is a wait, not a new rate.
 */
export function learnRate(before: LearnedRate, seen: Observation, ceiling: number | null, cycleMs = 0): LearnedRate {
  const openMs = Math.max(0, seen.now - before.lookedAtMs - seen.blockedMs);
  const maxPerSecond = ceiling ?? rules.maxPerSecond;
  const lateAtMs = areAnswersLate(before, seen) ? seen.now : before.lateAtMs;
  const current = openMs > rules.idleMs + 2 * (seen.awayMs ?? 0) ? restartSeek(before, seen.now) : before;
  const state = { ...addObservation(current, seen, openMs), cycleMs, lateAtMs };
  return continuePhase(state, seen, openMs, maxPerSecond);
}

/** Starts again a little under the learned rate, because the target may have changed in a minute or more of silence. */
export function recallRate(state: LearnedRate, now: number): LearnedRate {
  const fresh = { ...state, lookedAtMs: now };
  if (state.high === 0) {
    const low = Math.min(state.low, state.answered) * rules.recallFactor;
    return step({ ...fresh, low }, low === 0 ? state.rate : Math.max(low, rules.startPerSecond), 'seek', now);
  }
  return startRamp(fresh, { low: state.low * rules.recallFactor, high: state.high }, noCost, now);
}

/**
 * Restarts a seek after idle time. A seek doubles the rate after a few clean answers, so when the work ends it believes in a higher rate than was
 * ever answered. Until the target has refused, the next work starts at the rate that was answered, or at the first rate if nothing is known.
 */
function restartSeek(state: LearnedRate, now: number): LearnedRate {
  if (state.phase !== 'seek' || state.high > 0 || state.low === 0) return state;
  const low = Math.min(state.low, state.answered);
  return step({ ...state, low }, Math.max(low, rules.startPerSecond), 'seek', now);
}

function continuePhase(state: LearnedRate, seen: Observation, openMs: number, ceiling: number): LearnedRate {
  if (state.phase === 'measure') return continueMeasuring(state, seen);
  if (seen.currentRefused > 0) return state.phase === 'seek' ? endSeek(state, seen) : endRamp(state, seen);
  if (state.phase === 'seek' && state.rate < state.low) return { ...state, rate: state.low }; // a ceiling had lowered the rate
  if (!isWellUsed(state) || state.rate >= ceiling) return state;
  if (state.phase === 'seek' && isBlocked(seen)) return state; // a wait may be reported before the refusal that it came with
  return state.phase === 'seek' ? continueSeek(state, seen) : continueRamp(state, openMs);
}

// ---- seek ----

/** Doubles the rate after enough clean answers. */
function continueSeek(state: LearnedRate, seen: Observation): LearnedRate {
  const enough = Math.max(rules.seekAnswers, (state.rate * rules.seekMs) / 1000);
  if (state.sampleWindow.accepted < enough) return state;
  const high = state.rate >= state.high ? 0 : state.high; // accepted after all
  return step(
    { ...state, low: Math.max(state.low, state.rate), high },
    state.rate * rules.seekFactor,
    'seek',
    seen.now,
  );
}

function endSeek(state: LearnedRate, seen: Observation): LearnedRate {
  const isMeasurable = !isBlocked(seen) && state.rate >= rules.coarsePerSecond;
  if (isMeasurable) return startMeasuring(state);
  const isFirst = state.high === 0 && (isBlocked(seen) || state.low > 0);
  return isFirst ? resumeSeek(state, seen) : settleUnmeasured(state, seen, true);
}

/** Repeats the last doubling, because one refusal at a rate that was tried for a moment shows little. The next refusal there is believed. */
function resumeSeek(state: LearnedRate, seen: Observation): LearnedRate {
  const again = step({ ...state, high: state.rate }, state.low || state.rate / 2, 'seek', reopensAtMs(seen));
  return startAfterWait(again, seen);
}

// ---- measure ----

/** Holds the rate. The share accepted from the next moments on shows the limit. */
function startMeasuring(state: LearnedRate): LearnedRate {
  return {
    ...state,
    phase: 'measure',
    sampleWindow: { ...state.sampleWindow, openMs: 0, allowed: 0, accepted: 0, refused: 0 },
  };
}

function continueMeasuring(state: LearnedRate, seen: Observation): LearnedRate {
  const { sampleWindow } = state;
  if (isBlocked(seen)) return settleUnmeasured(state, seen);
  if (sampleWindow.openMs <= rules.settleMs)
    return { ...state, sampleWindow: { ...sampleWindow, accepted: 0, refused: 0 } };
  if (sampleWindow.openMs < rules.measureMs || sampleWindow.accepted + sampleWindow.refused < rules.measureAnswers)
    return state;
  if (sampleWindow.refused === 0) return { ...state, phase: state.to === 0 ? 'seek' : 'ramp' }; // the refusal was not about the rate
  return settleOnShare(state, seen);
}

// ---- ramp ----

/** Continues the ramp by one step. */
function continueRamp(state: LearnedRate, openMs: number): LearnedRate {
  const rampedMs = state.rampedMs + openMs;
  return { ...state, rampedMs, rate: rateOn(state, rampedMs) };
}

/** Ends a ramp by a refusal. A late refusal shows the limit; an early refusal may show a fall, or be left over from the rate before. */
function endRamp(state: LearnedRate, seen: Observation): LearnedRate {
  if (isBlocked(seen)) return isExcused(state, seen) ? resumeRamp(state, seen) : endBlockedRamp(state, seen);
  if (!isKnown(state)) return hasFallen(state) ? settleOnShare(state, seen, true) : state;
  const low = acceptedRate(state.sampleWindow);
  if (!isClimbing(state)) return settle(state, seen, { low, high: state.rate });
  // A used-up window accepts nothing for a while, so nothing can be measured in it.
  if (state.cycleMs > 0)
    return settle(state, seen, { low: Math.max(low, meanOnRamp(state, state.cycleMs)), high: state.rate });
  return state.rate >= rules.coarsePerSecond
    ? startMeasuring(state)
    : settle(state, seen, { low, high: state.rate }, true);
}

/** Ends a ramp by a refusal with a wait. All processes wait, so few such refusals must do: the answers and the ramp's length show the limit. */
function endBlockedRamp(state: LearnedRate, seen: Observation): LearnedRate {
  const share = acceptedShare(state.sampleWindow);
  const isDeep = state.cycleMs === 0 && state.rampedMs < rules.fallMs && share < rules.deepFallShare; // otherwise a window ends
  if (isDeep) return settleDeep(state, seen, state.rate * Math.max(rules.minDeepFall, share));
  const earlyBefore = state.earlyRamps + state.shortRamps;
  const supposed = nextEarlyRamps(state, isKnown(state) ? state.earlyRamps : earlyBefore);
  const earlyRamps = isKnown(state) ? supposed : Math.min(state.earlyRamps, supposed);
  const { min, likely } = evidence(acceptedStretch(state, supposed));
  const shown = state.sampleWindow.isAfterRefusal ? min : 0; // otherwise a burst may have been ready
  const sure = hasFallenBelow(state.sure, state) ? shown : Math.max(rules.sureFactor * state.sure, shown);
  const found = Math.max(isKnown(state) || isHeldBack(state) ? likely : 0, limitOnRamp(state, supposed));
  // A new burst each time does not explain that every ramp ends early. Then the limit is nearer to what is sure than to what a burst suggests.
  const isRefuted =
    earlyBefore >= (isKnown(state) ? rules.refutedAfter : 1) &&
    supposed > earlyBefore &&
    found > rules.refutedRatio * sure;
  const next = { ...state, earlyRamps, sure, shortRamps: supposed - earlyRamps };
  return settleBlocked(next, seen, isRefuted ? sure : Math.max(sure, found), Math.max(sure, found));
}

/** Settles after a deep fall: right after a wait most requests are refused, so nothing is sure any more. */
function settleDeep(state: LearnedRate, seen: Observation, low: number): LearnedRate {
  return settleBlocked({ ...state, sure: 0 }, seen, low, low);
}

/** Settles on `low`. `found`: the apparent limit; `high` lies between it and the rate that was refused. */
function settleBlocked(state: LearnedRate, seen: Observation, low: number, found: number): LearnedRate {
  const high = found + Math.max(0, state.rate - found) * rules.doubtShare;
  return settle(state, seen, { low, high }, low < state.from * rules.fallenShare);
}

/** Whether much less was sent than the rate allowed, so that the ramp stood still. */
function isHeldBack({ rampedMs, sampleWindow }: LearnedRate): boolean {
  return sampleWindow.openMs - rampedMs >= rules.fallMs;
}

/** Whether the limit is now below `perSecond`: a lower rate was refused, or requests were sent at this rate and fewer were accepted. */
function hasFallenBelow(perSecond: number, { rate, sampleWindow }: LearnedRate): boolean {
  const sent = (sampleWindow.allowed * 1_000) / Math.max(1, sampleWindow.openMs);
  return rate <= perSecond || (sent >= perSecond && acceptedRate(sampleWindow) < perSecond);
}

/** Returns what was accepted since the last refusal, as far as it is answered by now. */
function acceptedStretch({ sampleWindow, latencyMs }: LearnedRate, earlyRamps: number): Stretch {
  const { openMs, waitMs, acceptedTotal: accepted } = sampleWindow;
  return { openMs: Math.max(openMs / 2, openMs - latencyMs), waitMs, accepted, burstMs: burstMs(earlyRamps) };
}

/** Whether requests stood still on their way, or at the server. They then arrive all at once, and some are refused at any rate. */
function areAnswersLate({ latencyMs }: LearnedRate, { latency: { count, sumMs } }: Observation): boolean {
  return latencyMs > 0 && count > 0 && sumMs / count > rules.lateFactor * latencyMs + rules.lateMs;
}

/** Whether late answers excuse this refusal. Rarely: if the rate makes a server late, the rate is too high. */
function isExcused({ lateAtMs, excusedAtMs, cycleMs }: LearnedRate, seen: Observation): boolean {
  const { now } = seen;
  return cycleMs === 0 && now - lateAtMs <= rules.lateForMs && now - excusedAtMs >= rules.excuseEveryMs;
}

/** Resumes the same ramp after the wait. */
function resumeRamp(state: LearnedRate, seen: Observation): LearnedRate {
  return { ...startAfterWait(step(state, state.rate, 'ramp', reopensAtMs(seen)), seen), excusedAtMs: seen.now };
}

/** Whether the sample window is long enough to show what is accepted. */
function isKnown({ sampleWindow }: LearnedRate): boolean {
  return sampleWindow.openMs >= rules.knownMs && sampleWindow.accepted >= rules.knownAnswers;
}

/** Whether the ramp passed the known limit. The limit has then risen, and what was accepted on the way says little about it. */
function isClimbing({ rampedMs, rampMs, climbMs }: LearnedRate): boolean {
  return rampedMs > rampMs + climbMs / 2;
}

function hasFallen({ cycleMs, sampleWindow: { openMs, accepted, refused } }: LearnedRate): boolean {
  if (cycleMs > 0 || accepted === 0) return false; // a window has ended, or the target is about to accept nothing at all
  const answers = accepted + refused;
  return openMs >= rules.fallMs && answers >= rules.fallAnswers && refused >= rules.fallShare * answers;
}

// ---- new bounds ----

/** Settles on the accepted share of a rate that was too high; `high` stays near it. */
function settleOnShare(state: LearnedRate, seen: Observation, isQuick = false): LearnedRate {
  const low = state.rate * Math.max(rules.minAcceptedShare, acceptedShare(state.sampleWindow));
  return settle(state, seen, { low, high: Math.min(state.rate, low * rules.fallRoom) }, isQuick);
}

/** Settles on wide bounds, because nothing can be measured: all processes wait, or too few answers come. */
function settleUnmeasured(state: LearnedRate, seen: Observation, isQuick = false): LearnedRate {
  return settle(state, seen, { low: state.low || state.rate / 2, high: state.rate }, isQuick);
}

function settle(state: LearnedRate, seen: Observation, bounds: Bounds, isQuick = false): LearnedRate {
  const cost = { refused: state.sampleWindow.refusedTotal, blockedMs: waitLeftMs(seen), isQuick };
  return startAfterWait(startRamp(state, bounds, cost, reopensAtMs(seen), state.cycleMs), seen);
}

/** Begins the next sample window with the wait. */
function startAfterWait(state: LearnedRate, seen: Observation): LearnedRate {
  return { ...state, sampleWindow: { ...state.sampleWindow, isAfterRefusal: true, waitMs: waitLeftMs(seen) } };
}

/** Whether a Retry-After is in force, or came and ended since the last update. */
function isBlocked(seen: Observation): boolean {
  return waitLeftMs(seen) > 0 || seen.blockedMs > 0;
}

/** Returns the moment from which requests may be sent again. */
function reopensAtMs(seen: Observation): number {
  return Math.max(seen.now, seen.blockedUntilMs);
}
