import { evidence } from './evidence.ts';
import { hasGoneOn, isNewRamp, type LearnedRate, type Observation, step, waitLeftMs } from './learned-rate.ts';
import { noCost, startRamp } from './ramp.ts';
import { rateRules } from './rate-rules.ts';
import type { Sums } from './sums.ts';
import {
  blameErrors,
  countsErrors,
  followLimit,
  mayAskAboutErrors,
  noErrors,
  seeErrors,
  type ThrottlingErrors,
} from './throttling-errors.ts';

/**
 * Whether refusals are about the rate. Where they go on at the same share when the rate is lowered, they are about something else (the ids, other
 * tenants, broken servers behind the address): then they are taken for the background, as many of them are forgiven, and the rate goes back up.
 * Errors (5xx and lost answers) may be throttling, too: they count as refusals once a lower rate has ended them, until they come at a much
 * lower one all the same.
 */
export type Blame = {
  /** Share of answers that are refused whatever the rate, and how many more refusals may be forgiven now. */
  background: number;
  /** The share that the last trial found: the background may not grow beyond it by itself. */
  found: number;
  forgivable: number;
  /** What requests at the rate of this epoch were answered, fading over some seconds, and the time in which they were. */
  recent: { epoch: number; ms: number; answers: number; accepted: number; trouble: number };
  /** The ramps in a row that were cut early: how many, their answers, and how long requests were sent and held. */
  early: { ramps: number; answers: number; refused: number; openMs: number; waitedMs: number };
  trial: Trial | null;
  /** Until then no trial begins. */
  restUntilMs: number;
  restMs: number;
  errors: ThrottlingErrors;
  lookedAtMs: number;
};

type Trial = {
  sinceMs: number;
  answers: number;
  refused: number;
  share: number;
  rate: LearnedRate;
  of: 'refused' | 'trouble';
};

type Verdict = { blame: Blame; rate: LearnedRate };
type Judged = { blame: Blame; counts: Counts; rate: LearnedRate | null };
type Counts = { accepted: number; refused: number; currentAccepted: number; currentRefused: number };

const nothingSeen = { epoch: 0, ms: 0, answers: 0, accepted: 0, trouble: 0 };
const noEarlyEnd = { ramps: 0, answers: 0, refused: 0, openMs: 0, waitedMs: 0 };

const rules = {
  recentMs: 5_000,
  rare: 0.05, // a ramp that meets the limit has a smaller share of refusals, …
  early: 2, // … so many that were cut earlier, or had more, …
  earlyBlocked: 7, // … or so many where they made all processes wait, as the first that meet an unknown limit are early, too, and …
  earlyRefused: 3, // … so many refusals in them are worth a trial, …
  mostShare: 0.5, // … up to this share: more is a limit that fell
  errorShare: 0.1, // of the answers: errors are worth a trial, …
  mostErrors: 0.8, // … up to this share of errors: more is an outage
  margin: 0.8, // the trial's rate is what was accepted, times this
  enough: { refused: 6, trouble: 15 }, // a trial lasts until so many would have been seen, had it changed nothing, …
  clean: { refused: 3, trouble: 8 }, // … or so many, and there was none, …
  surely: 4, // … or so many were seen, and they are not fewer than before
  same: { refused: 0.4, trouble: 0.25 }, // they are not about the rate where this part of their share is left
  trialMs: 60_000, // a trial lasts no longer
  leastShare: 0.0005, // fewer are not worth a trial
  unsureRestMs: 5_000, // after a trial in which some were refused, too few to tell
  restMs: 20_000, // after a trial that showed that they are; twice as long each time, …
  longestRestMs: 600_000, // … at most
  generous: 1.5, // as many are forgiven as the background has, times this
  leastSaved: 4, // forgiveness is saved up to so many refusals, …
  savedMs: 4_000, // … or those of so long
  deepest: 0.25, // a ramp begins at this part of what is accepted at least
  forgetful: 20, // the background is the mean over as many refusals of it
  above: 1.25, // it may grow to what a trial found, times this
  least: 0.0003, // a smaller background is none
};

export function firstBlame(now: number): Blame {
  return {
    background: 0,
    found: 0,
    forgivable: 0,
    recent: nothingSeen,
    early: noEarlyEnd,
    trial: null,
    restUntilMs: 0,
    restMs: rules.restMs,
    errors: noErrors,
    lookedAtMs: now,
  };
}

/** Pure. `counts`: the answers by what they mean for the rate; `rate`: the one to go on with, null = as learned. */
export function blame(before: Blame, rate: LearnedRate, sums: Sums): Judged {
  const isThrottling = countsErrors(before.errors, sums.now);
  const errors = seeErrors(before.errors, rate, sums);
  const raw = rawCounts(sums, isThrottling, rate.phase);
  const state = { ...before, errors, recent: fade(before, rate, sums), lookedAtMs: sums.now };
  if (isThrottling && !countsErrors(errors, sums.now)) return goBackUp(state, before.errors, rate, raw, sums.now);
  if (state.trial !== null)
    return { ...tryOn(state, state.trial, rate, sums), counts: { ...raw, refused: 0, currentRefused: 0 } };
  const { counts, forgivable } = forgive(state, raw, rate);
  const next = { ...state, forgivable, background: background(state, raw, rate) };
  const of = worthATrial(next, sums, isThrottling);
  if (of === null) return { blame: next, counts, rate: null };
  const share =
    of === 'refused' ? (next.early.refused - 1) / next.early.answers : next.recent.trouble / next.recent.answers;
  const low = Math.min(rate.low || rate.rate, rate.rate);
  const most =
    of === 'refused'
      ? Math.min(low * (1 - share), acceptedWithWaits(next.early))
      : Math.min(low, acceptedBefore(next.recent, rate, share)); // errors also come of rates above low
  const lower = step(rate, most * rules.margin, 'ramp', sums.now);
  const nothing = { answers: 0, refused: 0 };
  const trial: Trial = { sinceMs: sums.now, ...nothing, share, of, rate: { ...rate, low } };
  return { blame: { ...next, trial, early: noEarlyEnd }, counts, rate: lower };
}

/** A second, waits included: where a limit asks for waits, it surely accepts that. */
function acceptedWithWaits({ answers, refused, openMs, waitedMs }: Blame['early']): number {
  return waitedMs === 0
    ? Number.POSITIVE_INFINITY
    : evidence({ accepted: answers - refused, openMs, waitMs: waitedMs }).least;
}

/** Errors are no reason to go faster, nor to go slower before they are known to be throttling. */
function rawCounts(sums: Sums, isThrottling: boolean, phase: LearnedRate['phase']): Counts {
  const refusing = isThrottling ? 1 : 0;
  const taking = isThrottling || phase === 'seek' ? 0 : 1;
  return {
    accepted: sums.accepted + taking * sums.trouble,
    refused: sums.refused + refusing * sums.trouble,
    currentAccepted: sums.currentAccepted + taking * sums.currentTrouble,
    currentRefused: sums.currentRefused + refusing * sums.currentTrouble,
  };
}

/** What requests at another rate were answered says nothing now. */
function fade(
  { recent, lookedAtMs }: Blame,
  { epoch, validFromMs, latencyMs }: LearnedRate,
  sums: Sums,
): Blame['recent'] {
  const openMs = Math.max(0, sums.now - Math.max(lookedAtMs, validFromMs + latencyMs)); // before it there can be no answer
  const isOther = epoch !== recent.epoch;
  const kept = isOther ? 0 : Math.exp(-openMs / rules.recentMs);
  const { currentAccepted, currentRefused, currentTrouble } = sums;
  return {
    epoch,
    ms: recent.ms * kept + (isOther ? openMs : rules.recentMs * (1 - kept)),
    answers: recent.answers * kept + currentAccepted + currentRefused + currentTrouble,
    accepted: recent.accepted * kept + currentAccepted,
    trouble: recent.trouble * kept + currentTrouble,
  };
}

function forgive(state: Blame, raw: Counts, rate: LearnedRate): { counts: Counts; forgivable: number } {
  if (state.background === 0) return { counts: raw, forgivable: 0 };
  const answers = raw.accepted + raw.refused;
  const most = Math.max(rules.leastSaved, (state.background * rate.rate * rules.savedMs) / 1_000);
  const forgivable = Math.min(most, state.forgivable + rules.generous * state.background * answers);
  const forgiven = Math.min(raw.refused, Math.floor(forgivable));
  const current = Math.min(raw.currentRefused, forgiven);
  return {
    forgivable: forgivable - forgiven,
    counts: {
      accepted: raw.accepted + forgiven,
      refused: raw.refused - forgiven,
      currentAccepted: raw.currentAccepted + current,
      currentRefused: raw.currentRefused - current,
    },
  };
}

/**
 * A ramp with a background begins so far under `low` that no refusal there is about the rate, though some were forgiven when `low` was found:
 * else a background that is taken for too large would hide the limit, and so prove itself.
 */
export function beginLower(before: LearnedRate, after: LearnedRate, { background: share }: Blame): LearnedRate {
  if (share === 0 || !isNewRamp(before, after)) return after;
  const from = Math.min(after.from, after.low * Math.max(rules.deepest, 1 - 2 * rules.generous * share));
  return { ...after, from, rate: from };
}

/** Seen where the rate is surely one that is accepted. */
function background(state: Blame, raw: Counts, rate: LearnedRate): number {
  const { background: share } = state;
  if (share === 0 || rate.rate > rate.low * (1 - rules.generous * share)) return share;
  const answers = raw.currentAccepted + raw.currentRefused;
  if (answers === 0) return share;
  const kept = Math.exp((-answers * share) / rules.forgetful);
  const next = Math.min(rules.above * state.found, kept * share + (1 - kept) * (raw.currentRefused / answers));
  return next < rules.least ? 0 : next;
}

/** A second, before a trial of errors. In a seek the rate is too new for what was seen of it to be that. */
function acceptedBefore({ ms, accepted }: Blame['recent'], { phase, rate }: LearnedRate, share: number): number {
  return phase === 'seek' ? rate * (1 - share) : evidence({ accepted, openMs: ms }).most;
}

function worthATrial(state: Blame, sums: Sums, isThrottling: boolean): Trial['of'] | null {
  const { recent, early, restUntilMs } = state;
  if (sums.now < restUntilMs || sums.holdUntil > sums.now) return null;
  const ramps = early.waitedMs > 0 ? rules.earlyBlocked : rules.early;
  const isEarly = early.ramps >= ramps && early.refused >= rules.earlyRefused;
  if (isEarly && early.refused > rules.leastShare * early.answers) return 'refused';
  const surely = recent.trouble - 2 * Math.sqrt(recent.trouble); // not by chance
  const isWorth = recent.trouble > 0 && surely >= rules.errorShare * recent.answers;
  const isOutage = recent.trouble > rules.mostErrors * recent.answers;
  const isAsked = !isThrottling && mayAskAboutErrors(state.errors, sums.now);
  return isWorth && !isOutage && sums.trouble > 0 && isAsked ? 'trouble' : null;
}

/** One more report of a trial, and its verdict once enough was seen. */
function tryOn(state: Blame, trial: Trial, rate: LearnedRate, sums: Sums): Verdict {
  const { of, share } = trial;
  const current = of === 'refused' ? sums.currentRefused : sums.currentTrouble;
  const seen = {
    ...trial,
    answers: trial.answers + sums.currentAccepted + sums.currentRefused + sums.currentTrouble,
    refused: trial.refused + current,
  };
  const same = { ...rate, lookedAtMs: sums.now };
  const left = seen.refused / Math.max(1, seen.answers);
  const expected = seen.answers * share;
  const isClear =
    (seen.refused === 0 && expected >= rules.clean[of]) || (seen.refused >= rules.surely && left >= share);
  const isTooLong = sums.now - trial.sinceMs > rules.trialMs;
  if (expected < rules.enough[of] && !isClear && !isTooLong) return { blame: { ...state, trial: seen }, rate: same };
  if (seen.refused >= 2 && left >= rules.same[of] * share && (of === 'trouble' || left < rules.mostShare))
    return notTheRate(state, seen, rate, left, sums.now);
  const errors = of === 'trouble' && !isTooLong ? blameErrors(state.errors, rate.rate, sums.now) : state.errors;
  const restUntilMs = sums.now + (seen.refused > 0 ? rules.unsureRestMs : state.restMs);
  const restMs = Math.min(rules.longestRestMs, 2 * state.restMs);
  const low = rate.rate / rules.margin;
  const high = Math.max(low, Math.min(seen.rate.rate, low * rateRules.fallRoom));
  return {
    blame: { ...state, errors, trial: null, restUntilMs, restMs },
    rate: startRamp(rate, { low, high }, noCost, sums.now, rate.cycleMs),
  };
}

/** The rate of before, and they are forgiven from now on. */
function notTheRate(state: Blame, trial: Trial, rate: LearnedRate, left: number, now: number): Verdict {
  const restored = { ...trial.rate, epoch: rate.epoch, dropEpoch: rate.dropEpoch, lookedAtMs: now };
  const up = step({ ...restored, high: 0 }, trial.rate.low, 'seek', now);
  const rest = { restUntilMs: now + rules.restMs, restMs: rules.restMs };
  if (trial.of === 'trouble') {
    const same = trial.rate.high > 0 ? startRamp(restored, trial.rate, noCost, now, rate.cycleMs) : up;
    return { blame: { ...state, trial: null, ...rest }, rate: same };
  }
  return { blame: { ...state, trial: null, background: left, found: left, forgivable: 3, ...rest }, rate: up };
}

/** It was by chance that no errors came at the rate that was thought to end them. */
function goBackUp(state: Blame, before: ThrottlingErrors, rate: LearnedRate, counts: Counts, now: number): Judged {
  const { endedByPerSecond } = before;
  const up = step({ ...rate, low: endedByPerSecond, high: 0, lookedAtMs: now }, endedByPerSecond, 'seek', now);
  return { blame: { ...state, early: noEarlyEnd, trial: null }, counts, rate: up };
}

/** Nothing is accepted: no trial can tell anything now. */
export function abandonTrial(blame: Blame): Blame {
  return { ...blame, trial: null, early: noEarlyEnd };
}

/** Counts the ramps that are cut early: under what was known to be accepted, or before half of their time where that makes all processes wait. */
export function countEarlyEnd(blame: Blame, before: LearnedRate, after: LearnedRate, seen: Observation): Blame {
  if (!isNewRamp(before, after) || before.phase !== 'ramp' || hasGoneOn(before)) return blame;
  const { accepted, refused } = before.sampleWindow;
  const bad = refused + seen.currentRefused;
  const answers = accepted + seen.currentAccepted + bad;
  const waitedMs = waitLeftMs(seen);
  const isMet = before.rate >= before.low && (waitedMs === 0 || before.rampedMs >= before.rampMs / 2);
  if (isMet && bad < rules.rare * answers) {
    const errors = blame.early.ramps === 0 ? followLimit(blame.errors, before.low) : blame.errors;
    return { ...blame, errors, early: noEarlyEnd };
  }
  if (bad > rules.mostShare * answers) return { ...blame, early: noEarlyEnd };
  const { ramps, ...sums } = blame.early;
  const early = {
    ramps: ramps + 1,
    answers: sums.answers + answers,
    refused: sums.refused + bad,
    openMs: sums.openMs + before.sampleWindow.openMs,
    waitedMs: sums.waitedMs + waitedMs,
  };
  return { ...blame, early };
}
