import { type AnnouncedWindow, announcedRate, watchWindow } from './announced-window.ts';
import { abandonTrial, type Blame, blame, countEarlyEnd, firstBlame, lowerRampStart } from './blame.ts';
import {
  type Closed,
  type Cycle,
  firstCycle,
  knownWindowMs,
  throttlesByErrors,
  updateClosed,
  updateOpen,
} from './closed.ts';
import { firstInFlight, type InFlight, learnInFlight } from './learn-in-flight.ts';
import { learnRate, recallRate } from './learn-rate.ts';
import { firstRate, isNewRamp, type LearnedRate, type Observation, step, waitLeftMs } from './learned-rate.ts';
import { noCost, startRamp } from './ramp.ts';
import { rateRules as rules } from './rate-rules.ts';
import { countRefusals, noRefusals, type Refusals } from './refusals.ts';
import { countMiss, type ShortWindows, shortWindowRate, watchShortWindows } from './short-windows.ts';
import type { Sums } from './sums.ts';
import { blameErrors } from './throttling-errors.ts';

/** The knowledge about a target, shared by all processes: plain JSON, changed by `control` alone. Times are ms of the Redis clock. */
export type TargetControl = {
  version: number;
  epoch: number;
  rate: LearnedRate;
  /** The search for the rate from before a ceiling that is far below it, and since when that ceiling holds; null = there is none. */
  beforeCeiling: { rate: LearnedRate; sinceMs: number } | null;
  /** The reason why nothing is accepted, so that one probe is sent at a time. Null = requests are sent at the rate. */
  closed: Closed | null;
  cycle: Cycle;
  blame: Blame;
  refusals: Refusals;
  announced: AnnouncedWindow | null;
  shortWindows: ShortWindows | null;
  inFlight: InFlight;
};

/** The number of the form in which the state is stored. Redis keeps it for 90 days; a state in another form is learned again. */
const stateVersion = 16;

/** Returns the next state of a target. Pure. */
export function control(stored: TargetControl | null, sums: Sums): TargetControl {
  const rateCeiling = sums.ceiling > 0 ? sums.ceiling : null;
  if (stored === null) return firstState(sums, rateCeiling);
  if (stored.version !== stateVersion) return { ...firstState(sums, rateCeiling), epoch: stored.epoch + 1 };
  if (sums.now < stored.rate.lookedAtMs - rules.clockRollbackMs)
    return recoverFromClockRollback(stored, sums, rateCeiling);
  const released = sums.released > 0 ? releaseState(stored) : stored;
  const before = sums.recall > 0 ? endCeiling(released, sums.now) : released;
  const announced = watchWindow(before.announced, sums);
  const shortWindows = watchShortWindows(before.shortWindows, sums);
  const ceiling = lowest(rateCeiling, advisedRate({ announced, shortWindows }, sums.now));
  const isFutileTrial = before.closed !== null && before.blame.trial !== null; // the target accepts nothing, whatever the rate
  const isHeldDown = before.beforeCeiling !== null;
  const judged = blame(isFutileTrial ? abandonTrial(before.blame) : before.blame, before.rate, sums, isHeldDown);
  const seen = observe(sums, judged.counts);
  const inFlight = sums.most === 0 ? before.inFlight : learnInFlight(before.inFlight, seen, sums.most);
  const refusals = countRefusals(before.refusals, sums);
  const state = { ...before, blame: judged.blame, refusals, announced, shortWindows, inFlight };
  const next = applyAnnouncedRate(before, nextState(state, judged.rate, seen, sums, ceiling), seen);
  return advanceEpoch(released, clampRate(heedCeiling(before, next, ceiling, sums.now), ceiling));
}

/** Returns what is known about the rate of a target, without what a ceiling far below it showed. */
export function knownRate({ rate, beforeCeiling }: Pick<TargetControl, 'rate' | 'beforeCeiling'>): LearnedRate {
  return beforeCeiling?.rate ?? rate;
}

/**
 * Sets the search aside while a ceiling is far below what is known, whoever set that ceiling. Under it another search goes on, because the target may
 * refuse even that rate. What it finds is dropped with the ceiling, and the search from before goes on.
 */
function heedCeiling(before: TargetControl, next: TargetControl, ceiling: number | null, now: number): TargetControl {
  const { rate, beforeCeiling } = next;
  if (next.closed !== null) return isClosedByOlder(before, next, now) ? endCeiling(next, now) : next;
  const { low, rate: wanted } = knownRate(next);
  const isFar = ceiling !== null && ceiling < (low * (beforeCeiling === null ? rules.dropBelowShare : 1) || wanted);
  if (isFar === (beforeCeiling !== null)) return next;
  if (!isFar) return endCeiling(next, now);
  return { ...next, rate: step(rate, ceiling, rate.phase, now), beforeCeiling: { rate, sinceMs: now } };
}

/** Whether a target closes because of requests from before the ceiling, whose answers come soon after it. */
function isClosedByOlder(before: TargetControl, { beforeCeiling }: TargetControl, now: number): boolean {
  return before.closed === null && beforeCeiling !== null && now - beforeCeiling.sinceMs < rules.olderAnswersMs;
}

/** Goes on with the search from before a ceiling. */
function endCeiling(state: TargetControl, now: number): TargetControl {
  if (state.beforeCeiling === null) return state;
  const { epoch, dropEpoch, demand, latencyMs, lookedAtMs } = state.rate;
  const known = { ...state.beforeCeiling.rate, epoch, dropEpoch, demand, latencyMs, lookedAtMs };
  if (known.phase === 'measure') return { ...state, rate: startRamp(known, known, noCost, now), beforeCeiling: null };
  const from = known.phase === 'seek' ? known.low || known.rate : known.rate;
  return { ...state, rate: step(known, from, known.phase, now), beforeCeiling: null };
}

function nextState(
  state: TargetControl,
  imposed: LearnedRate | null,
  seen: Observation,
  sums: Sums,
  ceiling: number | null,
): TargetControl {
  if (state.closed !== null) {
    const next = updateClosed(state, seen, sums);
    return {
      ...state,
      ...next,
      blame:
        next.closed === null && throttlesByErrors(next.cycle)
          ? { ...state.blame, errors: blameErrors(state.blame.errors, next.rate.low, sums.now) }
          : state.blame,
    };
  }
  const shut = updateOpen(state, seen, sums);
  if (shut.closed !== null && shut.closed.kind !== 'held')
    return { ...state, ...shut, blame: abandonTrial(state.blame) };
  if (imposed !== null) return { ...state, ...shut, rate: imposed };
  const learned = nextRate(state.rate, seen, sums, ceiling, knownWindowMs(state.cycle));
  const rate = lowerRampStart(state.rate, learned, state.blame);
  return { ...state, ...shut, rate, blame: countEarlyEnd(state.blame, state.rate, rate, seen) };
}

function nextRate(
  before: LearnedRate,
  seen: Observation,
  sums: Sums,
  ceiling: number | null,
  cycleMs: number,
): LearnedRate {
  return sums.recall > 0 ? recallRate(before, seen.now) : learnRate(before, seen, ceiling, cycleMs);
}

/** Returns the rate, per second, that the server's believed headers allow; null = no bound. */
export function advisedRate(state: Pick<TargetControl, 'announced' | 'shortWindows'>, now: number): number | null {
  return lowest(announcedRate(state.announced, now), shortWindowRate(state.shortWindows));
}

/**
 * Goes to the rate of the short windows that the server announces: as soon as it is known, and after a refusal at this rate or a lower one if the
 * refusal came late enough to be worth its wait.
 */
function applyAnnouncedRate(before: TargetControl, next: TargetControl, seen: Observation): TargetControl {
  const announced = shortWindowRate(next.shortWindows);
  if (announced === null || next.closed !== null || next.blame.trial !== null || next.rate.phase === 'seek')
    return next;
  const isFirstAnnouncement = shortWindowRate(before.shortWindows) === null;
  const isRefused = isNewRamp(before.rate, next.rate);
  if (!isFirstAnnouncement && !isRefused) return next;
  const { epoch, sampleWindow } = before.rate;
  const shortWindows = isRefused ? countMiss(next.shortWindows!, epoch, sampleWindow.openMs) : next.shortWindows!;
  const waitMs = waitLeftMs(seen);
  const isWorthItsWait = waitMs > 0 && sampleWindow.openMs >= (waitMs / rules.blockedPrice) * 2 ** shortWindows.misses;
  if (!isFirstAnnouncement && !isWorthItsWait) return { ...next, shortWindows };
  const known = { ...next.rate, earlyRamps: 0, shortRamps: 0 };
  const rate = startRamp(known, { low: announced, high: announced }, noCost, Math.max(seen.now, seen.blockedUntilMs));
  return { ...next, shortWindows: { ...shortWindows, epoch: rate.epoch }, rate };
}

/** Keeps the rate within its bounds, whatever set it. A server may announce any number. Nothing is sent at the rate of a closed target. */
function clampRate(state: TargetControl, ceiling: number | null): TargetControl {
  const maxPerSecond = Math.min(rules.maxPerSecond, (state.closed === null ? ceiling : null) ?? rules.maxPerSecond);
  const rate = Math.min(maxPerSecond, Math.max(rules.minPerSecond, state.rate.rate));
  return { ...state, rate: { ...state.rate, rate } };
}

/** Reopens a released target, and forgets what its headers said. */
function releaseState(stored: TargetControl): TargetControl {
  return { ...stored, closed: null, announced: null, shortWindows: null };
}

/** Continues from the rate after the clock of Redis went back, because no stored time has a meaning then. */
function recoverFromClockRollback(stored: TargetControl, sums: Sums, ceiling: number | null): TargetControl {
  const rate = recallRate({ ...knownRate(stored), lateAtMs: 0, excusedAtMs: 0, latencyMs: 0 }, sums.now);
  return clampRate({ ...firstState(sums, ceiling), rate, epoch: stored.epoch + 1 }, ceiling);
}

/** Returns the lower of two bounds. Null = no bound. */
function lowest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

function firstState(sums: Sums, ceiling: number | null): TargetControl {
  return {
    version: stateVersion,
    epoch: 1,
    rate: firstRate(sums.now, ceiling),
    beforeCeiling: null,
    closed: null,
    cycle: firstCycle(sums.now),
    blame: firstBlame(sums.now),
    refusals: noRefusals,
    announced: null,
    shortWindows: null,
    inFlight: firstInFlight(sums.now, sums.most || Number.MAX_SAFE_INTEGER),
  };
}

function advanceEpoch(before: TargetControl, next: TargetControl): TargetControl {
  const hasChanged = next.rate.epoch !== before.rate.epoch || (next.closed === null) !== (before.closed === null);
  if (!hasChanged) return next;
  const rate = next.closed === null ? next.rate : { ...next.rate, validFromMs: next.rate.lookedAtMs }; // a probe counts at once
  return { ...next, rate, epoch: before.epoch + 1 };
}

function observe(
  sums: Sums,
  counts: { accepted: number; refused: number; currentAccepted: number; currentRefused: number },
): Observation {
  return {
    now: sums.now,
    awayMs: sums.awayMs ?? 0,
    blockedMs: sums.blockedMs,
    blockedUntilMs: sums.holdUntil,
    ...counts,
    sent: sums.sent,
    latency: { count: sums.latencies, sumMs: sums.latencySum },
    starved: sums.starved,
    busy: sums.busy,
    reports: sums.reports,
    lost: sums.lost,
  };
}
