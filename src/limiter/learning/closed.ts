import { evidence } from './evidence.ts';
import { isWellUsed, type LearnedRate, type Observation, step } from './learned-rate.ts';
import { knownLimit, meanOnRamp, noCost, startRamp } from './ramp.ts';
import type { Alarm, Sums } from './sums.ts';

/**
 * The reason why nothing is accepted. One probe is sent at a time, and the first accepted probe opens the target again. `refused`: every answer is a
 * 429; `held`: the server asked for a long wait (`askedMs`); the other kinds: see `Alarm`.
 */
export type Closed = {
  kind: 'refused' | 'held' | Alarm['kind'];
  why: string;
  sinceMs: number;
  probeGapMs: number;
  askedMs?: number;
};

/**
 * The time from one opening of the target to the next. The number accepted in this time ÷ its length is a rate that would not have been refused,
 * whatever made the target refuse: a used-up window, or a limit that fell to almost nothing.
 */
export type Cycle = {
  openedAtMs: number | null; // null = no process called for a while
  accepted: number;
  refused: number;
  trouble: number;
  /** Length of the target's window, as far as it is known; 0 = unknown. */
  windowMs: number;
  /** Whether this length is only a guess, like the first one. */
  isGuess: boolean;
  /** Outages in a row that ended soon, each after something was accepted. They show that the target throttles by errors. */
  shortOutages: number;
  /** The requests accepted per second before the first of these outages, and the rate that was known then. */
  beforeFirst: { perSecond: number; known: number };
  /** Moment until which outages do not count as throttling, because they also came at a much lower rate. */
  exemptUntilMs: number;
  refusalStreak: RefusalStreak;
  lastWaitCycle: WaitCycle;
};

/** The refusals since something was last accepted: their number and start, the waits that the server asked for, and the end of the last wait. */
type RefusalStreak = { refused: number; sinceMs: number; waits: number; lastWaitUntilMs: number };

/** The last cycle that ended with a wait that the server asked for: its length, the length of the wait, and the number accepted. */
type WaitCycle = { lengthMs: number; waitMs: number; accepted: number };

type Opened = Cycle & { openedAtMs: number };

/** The part of a target's state that is decided here. */
type Step = { closed: Closed | null; cycle: Cycle; rate: LearnedRate };

const rules = {
  // Close: nothing is left
  exhaustedAnswers: 10, // refused answers in a row, over at least `exhaustedMs`, after which nothing is left
  exhaustedMs: 150, // shortest time from the first of `exhaustedAnswers` to the last
  exhaustedWaits: 3, // waits in a row without an accepted answer after which nothing is left
  longWaitMs: 5_000, // a wait this long closes the target, and a probe shows whether it is over

  // Probe while everything is refused
  firstGapMs: 100, // first gap between probes
  gapShare: 0.15, // gap between later probes, as a share of the time since the target closed
  maxGapMs: 75_000, // longest gap between probes while everything is refused
  longOutageMs: 3_900_000, // time after which the longest usual window is over, so that each probe may be what keeps the target closed
  maxGapInLongOutageMs: 900_000, // longest gap between probes after `longOutageMs`

  // Probe in an outage
  firstOutageGapMs: 500, // first gap between probes in an outage
  outageGapGrowth: 1.5, // factor on the gap after each failed probe
  maxOutageGapMs: 3_000, // longest gap between probes in an outage
  minShareAfterOutage: 0.25, // lowest rate after an outage, as a share of the rate that was known

  // Tell throttling by errors from outages
  shortOutageMs: 3_000, // an outage shorter than this may have been throttling, so the rate is not doubled after it
  recurWithinMs: 60_000, // longest time from an opening to the next outage of a row
  maxErrorShare: 0.5, // errors before such an outage, as a share of the accepted answers; with more, errors come at any rate
  minShortOutages: 3, // short outages in a row that show throttling
  minAcceptedShare: 0.6, // smallest rate accepted before such an outage, as a share of the rate accepted before the first
  exemptMs: 120_000, // time for which outages do not count as throttling, after less than that was accepted

  // Find the target's window
  minWindowMs: 3_000, // a shorter window needs no care
  sameLengthMs: 1_000, // tolerance for two cycles of one length, in addition to `sameLengthShare`
  sameLengthShare: 0.01, // tolerance for two cycles of one length, as a share of the length
  otherWaitMs: 500, // cycles of one length whose waits differ by this show a window
  maxWindowsPerCycle: 2, // in a longer cycle only the last window counts, because the rate was rising
  maxWindowGrowth: 1.5, // largest factor on a known window, because a cycle may be several windows
};

const allThrottledWhy = 'the API throttles every request';

const quickCost = { ...noCost, isQuick: true };

export function firstCycle(now: number): Cycle {
  return {
    openedAtMs: now,
    accepted: 0,
    refused: 0,
    trouble: 0,
    windowMs: 0,
    isGuess: true,
    shortOutages: 0,
    beforeFirst: { perSecond: 0, known: 0 },
    exemptUntilMs: 0,
    refusalStreak: emptyStreak(now),
    lastWaitCycle: { lengthMs: 0, waitMs: 0, accepted: 0 },
  };
}

/** Updates an open target: adds to the cycle, and closes the target if nothing is accepted. */
export function updateOpen(state: Step, seen: Observation, sums: Sums): Step {
  const { now, blockedUntilMs } = seen;
  const cycle = sums.recall > 0 ? restartCycle(state.cycle, now) : addToCycle(state.cycle, seen, sums);
  const close = (closed: Omit<Closed, 'probeGapMs'>, probeGapMs: number): Step => ({
    closed: { ...closed, probeGapMs },
    cycle,
    rate: state.rate,
  });
  if (sums.alarm) return close({ ...sums.alarm, sinceMs: now }, rules.firstOutageGapMs);
  if (blockedUntilMs - now >= rules.longWaitMs)
    return close({ kind: 'held', why: '', sinceMs: now, askedMs: blockedUntilMs - now }, rules.firstGapMs);
  cycle.refusalStreak = sums.accepted > 0 ? emptyStreak(now) : extendStreak(cycle.refusalStreak, seen);
  if (isExhausted(cycle.refusalStreak, now))
    return close({ kind: 'refused', why: allThrottledWhy, sinceMs: cycle.refusalStreak.sinceMs }, rules.firstGapMs);
  return { closed: null, cycle, rate: state.rate };
}

function emptyStreak(now: number): RefusalStreak {
  return { refused: 0, sinceMs: now, waits: 0, lastWaitUntilMs: 0 };
}

function extendStreak(
  streak: RefusalStreak,
  { now, blockedMs, blockedUntilMs, currentRefused }: Observation,
): RefusalStreak {
  const isWaiting = blockedUntilMs > now;
  const waits = streak.waits + (isWaiting && now >= streak.lastWaitUntilMs ? 1 : 0);
  // Requests that were on their way when a wait began say nothing.
  const refused = isWaiting || blockedMs > 0 ? 0 : streak.refused + currentRefused;
  if (refused === 0 && waits === 0) return emptyStreak(now);
  const lastWaitUntilMs = Math.max(streak.lastWaitUntilMs, blockedUntilMs);
  return { refused, waits, sinceMs: streak.sinceMs, lastWaitUntilMs };
}

/** Whether nothing is left of the limit. Waits count because the server may ask for waits that are too short. */
function isExhausted({ refused, sinceMs, waits }: RefusalStreak, now: number): boolean {
  return waits >= rules.exhaustedWaits || (refused >= rules.exhaustedAnswers && now - sinceMs >= rules.exhaustedMs);
}

/** Restarts the cycle after a silence, because the number accepted before it says nothing about the whole time. */
function restartCycle({ windowMs, isGuess, lastWaitCycle }: Cycle, now: number): Cycle {
  return { ...firstCycle(now), windowMs, isGuess, lastWaitCycle };
}

function addToCycle(cycle: Cycle, seen: Observation, sums: Sums): Cycle {
  const { accepted, refused, trouble } = cycle;
  return {
    ...cycle,
    accepted: accepted + sums.accepted,
    refused: refused + seen.refused,
    trouble: trouble + sums.trouble,
  };
}

/** Updates a closed target: waits for an accepted probe. */
export function updateClosed(state: Step, seen: Observation, sums: Sums): Step {
  const closed = state.closed!;
  if (sums.currentAccepted > 0)
    return reopen({ ...state, cycle: addToCycle(state.cycle, seen, sums) }, closed, seen, sums);
  const cycle =
    sums.recall > 0
      ? { ...restartCycle(state.cycle, seen.now), openedAtMs: null }
      : addToCycle(state.cycle, seen, sums);
  const rate = { ...state.rate, lookedAtMs: seen.now };
  // After a silence the closure counts from now, because no process probed the target in the meantime.
  const since = sums.recall > 0 ? { ...closed, sinceMs: seen.now } : markReachable(closed, seen, sums);
  return { closed: { ...since, ...sums.alarm, probeGapMs: nextGap(since, seen, sums) }, cycle, rate };
}

/** Turns `unreachable` into `refused` when a probe is refused, because a target that refuses can be reached. */
function markReachable(closed: Closed, { now }: Observation, { currentRefused }: Sums): Closed {
  if (closed.kind !== 'unreachable' || currentRefused === 0) return closed;
  return { ...closed, kind: 'refused', why: allThrottledWhy, sinceMs: now };
}

function nextGap({ kind, sinceMs, probeGapMs }: Closed, seen: Observation, sums: Sums): number {
  if (kind === 'held') return rules.firstGapMs * 10;
  if (kind === 'refused') {
    const closedMs = seen.now - sinceMs;
    const maxGapMs = closedMs < rules.longOutageMs ? rules.maxGapMs : rules.maxGapInLongOutageMs;
    return Math.max(rules.firstGapMs, Math.min(maxGapMs, rules.gapShare * closedMs));
  }
  const failed = sums.currentRefused + sums.currentTrouble > 0;
  return failed ? Math.min(rules.maxOutageGapMs, rules.outageGapGrowth * probeGapMs) : probeGapMs;
}

function reopen(state: Step, closed: Closed, seen: Observation, sums: Sums): Step {
  const { now } = seen;
  const probes = sums.currentAccepted;
  const cycle = countOutage({ ...state.cycle, accepted: state.cycle.accepted - probes }, closed, state.rate, now);
  const next: Opened = {
    ...cycle,
    openedAtMs: now,
    accepted: probes,
    refused: 0,
    trouble: 0,
    refusalStreak: emptyStreak(now),
  };
  if (closed.kind === 'held') return { closed: null, ...reopenAfterWait(state.rate, cycle, next, closed.askedMs!) };
  if (closed.kind === 'refused') return { closed: null, ...reopenAfterRefusals(state.rate, closed, cycle, next) };
  return { closed: null, cycle: next, rate: rateAfterOutage(state.rate, cycle, now) };
}

/** Whether an outage was short, came again soon, and came after few errors. After many errors, errors come at any rate. */
function isShortOutage({ kind, sinceMs }: Closed, { accepted, trouble, openedAtMs }: Cycle, now: number): boolean {
  const isRecurring = openedAtMs !== null && now - openedAtMs < rules.recurWithinMs;
  const hasFewErrors = trouble < rules.maxErrorShare * accepted;
  return kind === 'trouble' && now - sinceMs < rules.shortOutageMs && isRecurring && hasFewErrors;
}

/** Counts a short outage. A target that throttles accepts as much before each. If it accepts much less, the outages are not about the rate. */
function countOutage(cycle: Cycle, closed: Closed, rate: LearnedRate, now: number): Cycle {
  if (now < cycle.exemptUntilMs || !isShortOutage(closed, cycle, now)) return { ...cycle, shortOutages: 0 };
  const perSecond = acceptedPerSecond(cycle, now - cycle.openedAtMs!);
  if (cycle.shortOutages === 0)
    return { ...cycle, shortOutages: 1, beforeFirst: { perSecond, known: rate.low || rate.rate / 2 } };
  if (perSecond < rules.minAcceptedShare * cycle.beforeFirst.perSecond)
    return { ...cycle, shortOutages: 0, exemptUntilMs: now + rules.exemptMs };
  return { ...cycle, shortOutages: cycle.shortOutages + 1 };
}

/** Returns the requests accepted per second of a whole cycle, from one opening to the next. */
function acceptedPerSecond({ accepted }: Pick<Cycle, 'accepted'>, lengthMs: number): number {
  return evidence({ accepted, openMs: lengthMs }).min;
}

/** Whether the target throttles by errors, judged when it opens again. */
export function throttlesByErrors({ shortOutages }: Cycle): boolean {
  return shortOutages >= rules.minShortOutages;
}

/** Reopens at the rate of the whole cycle. The first time it may also be a rate known before, because the target may just have been away. */
function reopenAfterRefusals(rate: LearnedRate, closed: Closed, cycle: Cycle, next: Opened): Omit<Step, 'closed'> {
  const now = next.openedAtMs;
  if (cycle.openedAtMs === null) return { cycle: next, rate: rateAfterOutage(rate, cycle, now) };
  const lengthMs = Math.max(1, now - cycle.openedAtMs);
  // The target was open again before the probe, half a gap earlier on average.
  const cyclePerSecond = acceptedPerSecond(cycle, lengthMs - closed.probeGapMs / 2);
  // If less was sent than the rate allowed, for example because of the rate of a run, the number accepted says little about the limit.
  if (cycle.windowMs === 0 || !isWellUsed(rate)) {
    const before = rate.low || rate.rate / 2;
    const low = Math.max(cyclePerSecond, rules.minShareAfterOutage * knownLimit(rate));
    const high = Math.max(low, before);
    const guess = cycle.windowMs === 0 ? { ...next, windowMs: lengthMs, isGuess: true } : next;
    return { cycle: guess, rate: startRamp(rate, { low, high }, quickCost, now) };
  }
  const windowMs = Math.min(lengthMs, rules.maxWindowGrowth * cycle.windowMs);
  const cost = windowMs < rules.minWindowMs ? quickCost : { refused: cycle.refused, blockedMs: 0 };
  const known = { ...next, windowMs, isGuess: false };
  const hasRisen = lengthMs > rules.maxWindowsPerCycle * windowMs && rate.phase !== 'seek';
  const isNew = rate.rampedMs < windowMs; // the bounds come from the ramp before, which met the end of the window
  const lastWindowPerSecond = isNew ? rate.low : meanOnRamp(rate, windowMs);
  const limit = hasRisen ? Math.max(cyclePerSecond, lastWindowPerSecond) : cyclePerSecond;
  return { cycle: known, rate: startRamp(rate, { low: limit, high: limit }, cost, now, knownWindowMs(known)) };
}

/** Reopens at the rate of before. If cycles have one length although their waits differ, the server waits for the end of a window: a new ramp. */
function reopenAfterWait(rate: LearnedRate, cycle: Cycle, next: Opened, waitMs: number): Omit<Step, 'closed'> {
  const now = next.openedAtMs;
  const same = step(rate, rate.rate, rate.phase, now);
  if (cycle.openedAtMs === null) return { cycle: next, rate: same };
  const lengthMs = now - cycle.openedAtMs;
  if (cycle.accepted === 0) return { cycle: { ...next, openedAtMs: cycle.openedAtMs }, rate: same };
  const { lastWaitCycle: last } = cycle;
  const after = { ...next, lastWaitCycle: { lengthMs, waitMs, accepted: cycle.accepted } };
  const hasLast = last.lengthMs > 0; // otherwise a short first cycle would look like the same length
  const tolerance = rules.sameLengthMs + rules.sameLengthShare * lengthMs;
  const isSame = hasLast && Math.abs(lengthMs - last.lengthMs) < tolerance;
  // A sliding window counts a part of the window before it, so little is accepted in every second cycle.
  const both = { accepted: cycle.accepted + last.accepted };
  const low = Math.max(acceptedPerSecond(both, lengthMs + last.lengthMs), acceptedPerSecond(cycle, lengthMs));
  if (!isSame || Math.abs(waitMs - last.waitMs) < rules.otherWaitMs || low > rate.low)
    return { cycle: after, rate: same };
  const high = Math.max(low, acceptedPerSecond(last, last.lengthMs));
  const cost = { refused: cycle.refused, blockedMs: 0 };
  return {
    cycle: { ...after, windowMs: lengthMs, isGuess: false },
    rate: startRamp(rate, { low, high }, cost, now, lengthMs),
  };
}

/**
 * Returns the rate after an outage. Measurements in progress are dropped, and knowledge stays. The first rate is the rate of the whole cycle, in case
 * the target answers requests beyond its limit with errors. It is not much lower than the known rate, in case the target does not.
 */
function rateAfterOutage(rate: LearnedRate, cycle: Cycle, now: number): LearnedRate {
  const isExempt = now < cycle.exemptUntilMs;
  const known = Math.max(rate.low || rate.rate / 2, isExempt ? cycle.beforeFirst.known : 0);
  const cyclePerSecond =
    isExempt || cycle.openedAtMs === null ? known : acceptedPerSecond(cycle, now - cycle.openedAtMs!);
  const low = Math.min(known, Math.max(rules.minShareAfterOutage * known, cyclePerSecond));
  if (rate.low === 0 && cycle.shortOutages === 0) return step({ ...rate, low }, low, 'seek', now);
  const high = Math.max(known, rate.rate); // the rate may have caused the outage
  return startRamp(rate, { low, high }, low < known ? quickCost : noCost, now);
}

/** Returns the length of the target's window if it matters, otherwise 0. */
export function knownWindowMs({ windowMs, isGuess }: Cycle): number {
  return isGuess || windowMs < rules.minWindowMs ? 0 : windowMs;
}
