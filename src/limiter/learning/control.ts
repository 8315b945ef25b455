import { type AnnouncedWindow, announcedRate, watchWindow } from './announced-window.ts';
import { abandonTrial, type Blame, beginLower, blame, countEarlyEnd, firstBlame } from './blame.ts';
import {
  type Closed,
  type Cycle,
  firstCycle,
  knownWindowMs,
  throttlesByErrors,
  whileClosed,
  whileOpen,
} from './closed.ts';
import { firstInFlight, type InFlight, learnInFlight } from './learn-in-flight.ts';
import { learnRate, recallRate } from './learn-rate.ts';
import { firstRate, isNewRamp, type LearnedRate, type Observation, waitLeftMs } from './learned-rate.ts';
import { noCost, startRamp } from './ramp.ts';
import { rateRules as rules } from './rate-rules.ts';
import { rateOfShortWindows, refusedAt, type ShortWindows, watchShortWindows } from './short-windows.ts';
import type { Sums } from './sums.ts';
import { blameErrors } from './throttling-errors.ts';

/** What is known of a target, shared by all processes: plain JSON, changed by `control` alone. Times are ms of the Redis clock. */
export type TargetControl = {
  version: number;
  epoch: number;
  rate: LearnedRate;
  /** Nothing is accepted: one probe at a time. Null = requests are sent at the rate. */
  closed: Closed | null;
  cycle: Cycle;
  blame: Blame;
  announced: AnnouncedWindow | null;
  shortWindows: ShortWindows | null;
  inFlight: InFlight;
};

/** Changes with the form of the state: it stays in Redis for 90 days, and a release may find that of another one. */
const stateVersion = 12;

/** The next state of a target. Pure. */
export function control(stored: TargetControl | null, sums: Sums): TargetControl {
  const rateCeiling = sums.ceiling > 0 ? sums.ceiling : null;
  if (stored === null) return first(sums, rateCeiling);
  if (stored.version !== stateVersion) return ofOtherVersion(stored, sums, rateCeiling);
  if (sums.now < stored.rate.lookedAtMs - rules.setBackMs) return afterSetBack(stored, sums, rateCeiling);
  const before = sums.released > 0 ? released(stored) : stored;
  const announced = watchWindow(before.announced, sums);
  const shortWindows = watchShortWindows(before.shortWindows, sums);
  const ceiling = lowest(rateCeiling, advisedRate({ announced, shortWindows }, sums.now));
  const isInVain = before.closed !== null && before.blame.trial !== null; // a trial of a target that accepts nothing
  const judged = blame(isInVain ? abandonTrial(before.blame) : before.blame, before.rate, sums);
  const seen = observe(sums, judged.counts);
  const inFlight = sums.most === 0 ? before.inFlight : learnInFlight(before.inFlight, seen, sums.most);
  const state = { ...before, blame: judged.blame, announced, shortWindows, inFlight };
  const next = asAnnounced(before, nextState(state, judged.rate, seen, sums, ceiling), seen);
  return withEpoch(before, clampRate(next, ceiling));
}

function nextState(
  state: TargetControl,
  imposed: LearnedRate | null,
  seen: Observation,
  sums: Sums,
  ceiling: number | null,
): TargetControl {
  if (state.closed !== null) {
    const next = whileClosed(state, seen, sums);
    return {
      ...state,
      ...next,
      blame:
        next.closed === null && throttlesByErrors(next.cycle)
          ? { ...state.blame, errors: blameErrors(state.blame.errors, next.rate.low, sums.now) }
          : state.blame,
    };
  }
  const shut = whileOpen(state, seen, sums);
  if (shut.closed !== null && shut.closed.kind !== 'held')
    return { ...state, ...shut, blame: abandonTrial(state.blame) };
  if (imposed !== null) return { ...state, ...shut, rate: imposed };
  const learned = nextRate(state.rate, seen, sums, ceiling, knownWindowMs(state.cycle));
  const rate = beginLower(state.rate, learned, state.blame);
  return { ...state, ...shut, rate, blame: countEarlyEnd(state.blame, state.rate, rate, seen) };
}

function nextRate(
  before: LearnedRate,
  seen: Observation,
  sums: Sums,
  ceiling: number | null,
  cycleMs: number,
): LearnedRate {
  if (sums.recall > 0 && sums.pinned > 0) return { ...firstRate(seen.now, ceiling), epoch: before.epoch + 1 };
  return sums.recall > 0 ? recallRate(before, seen.now) : learnRate(before, seen, ceiling, cycleMs);
}

/** What the server's headers leave, as far as they are believed, a second; null = no bound. */
export function advisedRate(state: Pick<TargetControl, 'announced' | 'shortWindows'>, now: number): number | null {
  return lowest(announcedRate(state.announced, now), rateOfShortWindows(state.shortWindows));
}

/**
 * Goes to the rate of the short windows that the server announces: once it is known, and where a refusal at it, or at a lower rate, came so late
 * that its wait is worth it.
 */
function asAnnounced(before: TargetControl, next: TargetControl, seen: Observation): TargetControl {
  const most = rateOfShortWindows(next.shortWindows);
  if (most === null || next.closed !== null || next.blame.trial !== null || next.rate.phase === 'seek') return next;
  const isNews = rateOfShortWindows(before.shortWindows) === null;
  const isRefused = isNewRamp(before.rate, next.rate);
  if (!isNews && !isRefused) return next;
  const { epoch, sampleWindow } = before.rate;
  const shortWindows = isRefused ? refusedAt(next.shortWindows!, epoch, sampleWindow.openMs) : next.shortWindows!;
  const waitMs = waitLeftMs(seen);
  const isRare = waitMs > 0 && sampleWindow.openMs >= (waitMs / rules.blockedPrice) * 2 ** shortWindows.misses;
  if (!isNews && !isRare) return { ...next, shortWindows };
  const known = { ...next.rate, early: 0, short: 0 };
  const rate = startRamp(known, { low: most, high: most }, noCost, Math.max(seen.now, seen.blockedUntilMs));
  return { ...next, shortWindows: { ...shortWindows, epoch: rate.epoch }, rate };
}

/** Whatever set the rate. */
function clampRate(state: TargetControl, ceiling: number | null): TargetControl {
  const { rate } = state.rate;
  const most = Math.min(rules.mostPerSecond, ceiling ?? rules.mostPerSecond); // a server may announce any number
  return { ...state, rate: { ...state.rate, rate: Math.min(most, Math.max(rules.leastPerSecond, rate)) } };
}

/** Nothing holds it any more, so the rate is again what is known to be accepted. */
function released(stored: TargetControl): TargetControl {
  const { rate, low } = stored.rate;
  return {
    ...stored,
    closed: null,
    announced: null,
    shortWindows: null,
    rate: { ...stored.rate, rate: Math.max(rate, low) },
  };
}

/** The clock of Redis was set back, so no time that is stored means anything: goes on from the rate. */
function afterSetBack(stored: TargetControl, sums: Sums, ceiling: number | null): TargetControl {
  const rate = recallRate({ ...stored.rate, lateAtMs: 0, excusedAtMs: 0, latencyMs: 0 }, sums.now);
  return clampRate({ ...first(sums, ceiling), rate, epoch: stored.epoch + 1 }, ceiling);
}

/** Null = no bound. */
export function lowest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/** Goes on from the bounds of the rate, which every version has. */
function ofOtherVersion({ epoch, rate: known }: TargetControl, sums: Sums, ceiling: number | null): TargetControl {
  const { rate, low, high } = known;
  const fresh = { ...firstRate(sums.now, ceiling), rate, low, answered: low, high, epoch: known.epoch };
  return clampRate({ ...first(sums, ceiling), rate: recallRate(fresh, sums.now), epoch: epoch + 1 }, ceiling);
}

function first(sums: Sums, ceiling: number | null): TargetControl {
  return {
    version: stateVersion,
    epoch: 1,
    rate: firstRate(sums.now, ceiling),
    closed: null,
    cycle: firstCycle(sums.now),
    blame: firstBlame(sums.now),
    announced: null,
    shortWindows: null,
    inFlight: firstInFlight(sums.now, sums.most || Number.MAX_SAFE_INTEGER),
  };
}

function withEpoch(before: TargetControl, next: TargetControl): TargetControl {
  const isNew = next.rate.epoch !== before.rate.epoch || (next.closed === null) !== (before.closed === null);
  if (!isNew) return next;
  const rate = next.closed === null ? next.rate : { ...next.rate, validFromMs: next.rate.lookedAtMs }; // a probe counts at once
  return { ...next, rate, epoch: before.epoch + 1 };
}

function observe(
  sums: Sums,
  counts: { accepted: number; refused: number; currentAccepted: number; currentRefused: number },
): Observation {
  return {
    now: sums.now,
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
