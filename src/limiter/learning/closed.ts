import { evidence } from './evidence.ts';
import { type LearnedRate, type Observation, step } from './learned-rate.ts';
import { knownLimit, meanOnRamp, noCost, startRamp } from './ramp.ts';
import type { Alarm, Sums } from './sums.ts';

/**
 * Nothing is accepted, so one probe is sent at a time, and the first that is accepted opens the target again. `refused`: everything is answered
 * with 429; `held`: the server asked for a long wait (`askedMs`); the others: see `Alarm`.
 */
export type Closed = {
  kind: 'refused' | 'held' | Alarm['kind'];
  why: string;
  sinceMs: number;
  probeGapMs: number;
  askedMs?: number;
};

/**
 * From one opening to the next. What was accepted in that time divided by its length is the rate that would not have been refused, whatever made
 * the target refuse: a spent window, or a limit that fell to almost nothing.
 */
export type Cycle = {
  openedMs: number | null; // null = nobody was there for a while
  accepted: number;
  refused: number;
  trouble: number;
  /** Length of the target's window, as far as one is known; 0 = none. The first is a guess. */
  windowMs: number;
  isGuess: boolean;
  /** Outages in a row that ended soon, each after something was accepted: the target throttles by errors. */
  shortOutages: number;
  /** What was accepted a second before the first of them, and the rate that was known then. */
  beforeFirst: { perSecond: number; known: number };
  /** Until then outages are no throttling, because they came at a much lower rate, too. */
  exemptUntilMs: number;
  /** Refused since something was accepted last, since when, how many waits the server asked for in that time, and the end of the last. */
  dry: { refused: number; sinceMs: number; waits: number; waitsUntilMs: number };
  /** The last cycle that ended by a wait that the server asked for: its length, that of the wait, and what was accepted in it. */
  last: { lengthMs: number; heldMs: number; accepted: number };
};

type Opened = Cycle & { openedMs: number };

/** The part of a target's state that is decided here. */
type Step = { closed: Closed | null; cycle: Cycle; rate: LearnedRate };

const rules = {
  dryAnswers: 10, // so many refused answers …
  dryMs: 150, // … over this time, and none accepted: nothing is left, …
  dryWaits: 3, // … as where a wait that the server asked for ends and the next one begins, and so many did
  longHoldMs: 5_000, // a wait that is longer closes: one probe shows whether it is over
  gapMs: 100, // between probes at first, …
  gapShare: 0.15, // … then this part of the time since it closed, …
  longestGapMs: 75_000, // … at most, …
  hopelessMs: 3_900_000, // … but after the longest usual window each probe may be what keeps it closed, …
  hopelessGapMs: 900_000, // … so at most this
  shortOutageMs: 3_000, // errors that end sooner may have been throttling: nothing is doubled after them, …
  oftenMs: 60_000, // … and where they come again within this time, …
  fewErrors: 0.5, // … fewer of them than this part of what was accepted, …
  shortOutages: 3, // … so many times in a row, they were, …
  lowerAccepted: 0.6, // … unless less than this part was accepted before one than before the first: …
  exemptMs: 120_000, // … then they are not for so long
  outageGapMs: 500, // the same in an outage, …
  outageGrowth: 1.5, // … longer by this after each that fails, …
  longestOutageGapMs: 3_000, // … at most
  afterOutage: 0.25, // of the rate that was known: the least after an outage
  shortestWindowMs: 3_000, // a shorter one needs no care of its own
  sameMs: 1_000, // two cycles that differ by less than this …
  sameShare: 0.01, // … and this share have one length, …
  otherHoldMs: 500, // … and where their waits differ by more than this, it is that of a window
  severalWindows: 2, // after more of them the last counts, not all: the rate was rising
  growth: 1.5, // a cycle may be several windows, so a known window grows by this at most
};

const throttlesAll = 'the API throttles every request';

const hasty = { ...noCost, isHasty: true };

export function firstCycle(now: number): Cycle {
  return {
    openedMs: now,
    accepted: 0,
    refused: 0,
    trouble: 0,
    windowMs: 0,
    isGuess: true,
    shortOutages: 0,
    beforeFirst: { perSecond: 0, known: 0 },
    exemptUntilMs: 0,
    dry: notDry(now),
    last: { lengthMs: 0, heldMs: 0, accepted: 0 },
  };
}

/** Counts on, and closes where nothing is accepted. */
export function whileOpen(state: Step, seen: Observation, sums: Sums): Step {
  const { now, blockedUntilMs } = seen;
  const cycle = sums.recall > 0 ? begunAnew(state.cycle, now) : countOn(state.cycle, seen, sums);
  const close = (closed: Omit<Closed, 'probeGapMs'>, probeGapMs: number): Step => ({
    closed: { ...closed, probeGapMs },
    cycle,
    rate: state.rate,
  });
  if (sums.alarm) return close({ ...sums.alarm, sinceMs: now }, rules.outageGapMs);
  if (blockedUntilMs - now >= rules.longHoldMs)
    return close({ kind: 'held', why: '', sinceMs: now, askedMs: blockedUntilMs - now }, rules.gapMs);
  cycle.dry = sums.accepted > 0 ? notDry(now) : dryer(cycle.dry, seen);
  if (isDry(cycle.dry, now))
    return close({ kind: 'refused', why: throttlesAll, sinceMs: cycle.dry.sinceMs }, rules.gapMs);
  return { closed: null, cycle, rate: state.rate };
}

function notDry(now: number): Cycle['dry'] {
  return { refused: 0, sinceMs: now, waits: 0, waitsUntilMs: 0 };
}

function dryer(dry: Cycle['dry'], { now, blockedMs, blockedUntilMs, currentRefused }: Observation): Cycle['dry'] {
  const isWaiting = blockedUntilMs > now;
  const waits = dry.waits + (isWaiting && now >= dry.waitsUntilMs ? 1 : 0);
  const refused = isWaiting || blockedMs > 0 ? 0 : dry.refused + currentRefused; // what was on its way when a wait began says nothing
  if (refused === 0 && waits === 0) return notDry(now);
  return { refused, waits, sinceMs: dry.sinceMs, waitsUntilMs: Math.max(dry.waitsUntilMs, blockedUntilMs) };
}

/** Whether nothing is left, though the server may ask for waits that are too short. */
function isDry({ refused, sinceMs, waits }: Cycle['dry'], now: number): boolean {
  return waits >= rules.dryWaits || (refused >= rules.dryAnswers && now - sinceMs >= rules.dryMs);
}

/** After a silence: what was accepted before it says nothing about the whole time. */
function begunAnew({ windowMs, isGuess, last }: Cycle, now: number): Cycle {
  return { ...firstCycle(now), windowMs, isGuess, last };
}

function countOn(cycle: Cycle, seen: Observation, sums: Sums): Cycle {
  const { accepted, refused, trouble } = cycle;
  return {
    ...cycle,
    accepted: accepted + sums.accepted,
    refused: refused + seen.refused,
    trouble: trouble + sums.trouble,
  };
}

/** Waits for a probe to be accepted. */
export function whileClosed(state: Step, seen: Observation, sums: Sums): Step {
  const closed = state.closed!;
  if (sums.currentAccepted > 0) return open({ ...state, cycle: countOn(state.cycle, seen, sums) }, closed, seen, sums);
  const cycle =
    sums.recall > 0 ? { ...begunAnew(state.cycle, seen.now), openedMs: null } : countOn(state.cycle, seen, sums);
  const rate = { ...state.rate, lookedAtMs: seen.now };
  const since = sums.recall > 0 ? { ...closed, sinceMs: seen.now } : asAnswered(closed, seen, sums); // nobody has probed it meanwhile
  return { closed: { ...since, ...sums.alarm, probeGapMs: nextGap(since, seen, sums) }, cycle, rate };
}

/** Whoever refuses a probe can be reached. */
function asAnswered(closed: Closed, { now }: Observation, { currentRefused }: Sums): Closed {
  if (closed.kind !== 'unreachable' || currentRefused === 0) return closed;
  return { ...closed, kind: 'refused', why: throttlesAll, sinceMs: now };
}

function nextGap({ kind, sinceMs, probeGapMs }: Closed, seen: Observation, sums: Sums): number {
  if (kind === 'held') return rules.gapMs * 10;
  if (kind === 'refused') {
    const closedMs = seen.now - sinceMs;
    const longestMs = closedMs < rules.hopelessMs ? rules.longestGapMs : rules.hopelessGapMs;
    return Math.max(rules.gapMs, Math.min(longestMs, rules.gapShare * closedMs));
  }
  const failed = sums.currentRefused + sums.currentTrouble > 0;
  return failed ? Math.min(rules.longestOutageGapMs, rules.outageGrowth * probeGapMs) : probeGapMs;
}

function open(state: Step, closed: Closed, seen: Observation, sums: Sums): Step {
  const { now } = seen;
  const probes = sums.currentAccepted;
  const cycle = countOutage({ ...state.cycle, accepted: state.cycle.accepted - probes }, closed, state.rate, now);
  const next: Opened = {
    ...cycle,
    openedMs: now,
    accepted: probes,
    refused: 0,
    trouble: 0,
    dry: notDry(now),
  };
  if (closed.kind === 'held') return { closed: null, ...afterHold(state.rate, cycle, next, closed.askedMs!) };
  if (closed.kind === 'refused') return { closed: null, ...afterDryness(state.rate, closed, cycle, next) };
  return { closed: null, cycle: next, rate: afterOutage(state.rate, cycle, now) };
}

/** Few errors before it: else they come whatever the rate. */
function isShortOutage({ kind, sinceMs }: Closed, { accepted, trouble, openedMs }: Cycle, now: number): boolean {
  const isOften = openedMs !== null && now - openedMs < rules.oftenMs;
  return kind === 'trouble' && now - sinceMs < rules.shortOutageMs && isOften && trouble < rules.fewErrors * accepted;
}

/** A target that throttles lets as much through before each outage: where it is much less, the rate is not what they are about. */
function countOutage(cycle: Cycle, closed: Closed, rate: LearnedRate, now: number): Cycle {
  if (now < cycle.exemptUntilMs || !isShortOutage(closed, cycle, now)) return { ...cycle, shortOutages: 0 };
  const perSecond = leastOf(cycle, now - cycle.openedMs!);
  if (cycle.shortOutages === 0)
    return { ...cycle, shortOutages: 1, beforeFirst: { perSecond, known: rate.low || rate.rate / 2 } };
  if (perSecond < rules.lowerAccepted * cycle.beforeFirst.perSecond)
    return { ...cycle, shortOutages: 0, exemptUntilMs: now + rules.exemptMs };
  return { ...cycle, shortOutages: cycle.shortOutages + 1 };
}

/** A second, by a whole cycle: from one opening to the next. */
function leastOf({ accepted }: Pick<Cycle, 'accepted'>, lengthMs: number): number {
  return evidence({ accepted, openMs: lengthMs }).least;
}

/** Whether errors are how the target throttles, as seen when it opens again. */
export function throttlesByErrors({ shortOutages }: Cycle): boolean {
  return shortOutages >= rules.shortOutages;
}

/** The rate of the whole cycle; at first also what was known before, because the target may only have been away. */
function afterDryness(rate: LearnedRate, closed: Closed, cycle: Cycle, next: Opened): Omit<Step, 'closed'> {
  const now = next.openedMs;
  if (cycle.openedMs === null) return { cycle: next, rate: afterOutage(rate, cycle, now) };
  const lengthMs = Math.max(1, now - cycle.openedMs);
  const ofCycle = leastOf(cycle, lengthMs - closed.probeGapMs / 2); // it was open again before the probe
  if (cycle.windowMs === 0) {
    const before = rate.low || rate.rate / 2;
    const low = Math.max(ofCycle, rules.afterOutage * knownLimit(rate)); // it may only have been away
    const high = Math.max(low, before);
    return { cycle: { ...next, windowMs: lengthMs, isGuess: true }, rate: startRamp(rate, { low, high }, hasty, now) };
  }
  const windowMs = Math.min(lengthMs, rules.growth * cycle.windowMs);
  const cost = windowMs < rules.shortestWindowMs ? hasty : { refused: cycle.refused, blockedMs: 0 };
  const known = { ...next, windowMs, isGuess: false };
  const hasRisen = lengthMs > rules.severalWindows * windowMs && rate.phase !== 'seek';
  const isNew = rate.rampedMs < windowMs; // its bounds come from the ramp before, which met the end of the window
  const last = hasRisen ? Math.max(ofCycle, isNew ? rate.low : meanOnRamp(rate, windowMs)) : ofCycle;
  return { cycle: known, rate: startRamp(rate, { low: last, high: last }, cost, now, knownWindowMs(known)) };
}

/** Where cycles have the same length though their waits have not, the server waits for the end of a window. */
function afterHold(rate: LearnedRate, cycle: Cycle, next: Opened, heldMs: number): Omit<Step, 'closed'> {
  const now = next.openedMs;
  const same = step(rate, rate.rate, rate.phase, now);
  if (cycle.openedMs === null) return { cycle: next, rate: same };
  const lengthMs = now - cycle.openedMs;
  if (cycle.accepted === 0) return { cycle: { ...next, openedMs: cycle.openedMs }, rate: same };
  const after = { ...next, last: { lengthMs, heldMs, accepted: cycle.accepted } };
  const hasLast = cycle.last.lengthMs > 0; // else the first cycle looks like one of no length, if it is short
  const isSame = hasLast && Math.abs(lengthMs - cycle.last.lengthMs) < rules.sameMs + rules.sameShare * lengthMs;
  // Where a window counts a part of the one before it, as a sliding one does, little is accepted in each second cycle.
  const both = { accepted: cycle.accepted + cycle.last.accepted };
  const low = Math.max(leastOf(both, lengthMs + cycle.last.lengthMs), leastOf(cycle, lengthMs));
  if (!isSame || Math.abs(heldMs - cycle.last.heldMs) < rules.otherHoldMs || low > rate.low)
    return { cycle: after, rate: same };
  const high = Math.max(low, leastOf(cycle.last, cycle.last.lengthMs));
  const cost = { refused: cycle.refused, blockedMs: 0 };
  return {
    cycle: { ...after, windowMs: lengthMs, isGuess: false },
    rate: startRamp(rate, { low, high }, cost, now, lengthMs),
  };
}

/**
 * What was being measured is thrown away, what was known stays. The first rate is that of the whole cycle, in case the target answers requests
 * beyond its limit with errors; not much lower, in case it does not.
 */
function afterOutage(rate: LearnedRate, cycle: Cycle, now: number): LearnedRate {
  const isExempt = now < cycle.exemptUntilMs;
  const known = Math.max(rate.low || rate.rate / 2, isExempt ? cycle.beforeFirst.known : 0);
  const ofCycle = isExempt || cycle.openedMs === null ? known : leastOf(cycle, now - cycle.openedMs!);
  const low = Math.min(known, Math.max(rules.afterOutage * known, ofCycle));
  if (rate.low === 0 && cycle.shortOutages === 0) return step({ ...rate, low }, low, 'seek', now);
  const high = Math.max(known, rate.rate); // the outage may have come of it
  return startRamp(rate, { low, high }, low < known ? hasty : noCost, now);
}

/** The window of the target where its length matters, else 0. */
export function knownWindowMs({ windowMs, isGuess }: Cycle): number {
  return isGuess || windowMs < rules.shortestWindowMs ? 0 : windowMs;
}
