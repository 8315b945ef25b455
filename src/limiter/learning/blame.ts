import { evidence } from './evidence.ts';
import { isNewRamp, isResumedRamp, type LearnedRate, type Observation, step, waitLeftMs } from './learned-rate.ts';
import { noCost, startRamp } from './ramp.ts';
import { rateRules } from './rate-rules.ts';
import type { Sums } from './sums.ts';
import {
  areErrorsThrottling,
  blameErrors,
  canAskAboutErrors,
  followLimit,
  noErrors,
  type ThrottlingErrors,
  updateErrors,
} from './throttling-errors.ts';

/**
 * Whether refusals are about the rate. If the same share is still refused at a lower rate, something other than the rate causes the refusals: the
 * ids, other tenants, broken servers behind the address. This share is then the background. As many refusals are forgiven, and the rate goes back up.
 * Errors (5xx and lost answers) can also be throttling: they count as refusals after a lower rate has ended them, until they come at a much lower
 * rate anyway.
 */
export type Blame = {
  /** Share of answers that are refused at any rate. */
  background: number;
  /** Share that the last trial found. The background does not grow far beyond it without another trial. */
  foundShare: number;
  /** Number of further refusals that may be forgiven now. */
  forgivable: number;
  /** Answers to requests at the rate of this epoch, and the time in which they came. All fade over some seconds. */
  recent: { epoch: number; ms: number; answers: number; accepted: number; trouble: number };
  /** Ramps in a row that were cut early, their answers, the time in which requests were sent, and the waits after them. */
  earlyEnds: { ramps: number; answers: number; refused: number; openMs: number; waitedMs: number };
  trial: Trial | null;
  /** Moment before which no trial begins. */
  restUntilMs: number;
  /** Length of the next rest. */
  restMs: number;
  errors: ThrottlingErrors;
  lookedAtMs: number;
};

/** A trial of a lower rate, to see whether it ends refusals or errors. */
type Trial = {
  cause: 'refused' | 'trouble';
  sinceMs: number;
  answers: number;
  /** Refusals or errors, whichever the cause is. */
  refused: number;
  /** Share of refusals or errors before the trial. */
  share: number;
  /** Learned rate before the trial. */
  rate: LearnedRate;
};

type Verdict = { blame: Blame; rate: LearnedRate };
/** `counts`: the answers by what they mean for the rate. `rate`: the rate to continue with; null = the learned rate. */
type Judged = { blame: Blame; counts: Counts; rate: LearnedRate | null };
type Counts = { accepted: number; refused: number; currentAccepted: number; currentRefused: number };

const noRecentAnswers = { epoch: 0, ms: 0, answers: 0, accepted: 0, trouble: 0 };
const noEarlyEnds = { ramps: 0, answers: 0, refused: 0, openMs: 0, waitedMs: 0 };

const rules = {
  recentMs: 5_000, // time in which recent answers fade

  // Begin a trial
  maxMetShare: 0.05, // a ramp with a smaller share of refusals has met the limit; any other was cut early
  minEarlyRamps: 2, // early ramps in a row that are worth a trial
  minEarlyRampsWithWaits: 7, // early ramps that are worth a trial if all processes had to wait: the first ramps to an unknown limit are early anyway
  minEarlyRefused: 3, // refusals in these ramps that are worth a trial
  minRefusedShare: 0.0005, // a smaller share of refusals in these ramps is not worth a trial
  maxRefusedShare: 0.5, // a larger share of refusals is a limit that fell
  minErrorShare: 0.1, // share of errors that is worth a trial
  maxErrorShare: 0.8, // a larger share of errors is an outage
  trialFactor: 0.8, // rate of the trial, as a part of the rate that was accepted

  // End a trial
  expectedToJudge: { refused: 6, trouble: 15 }, // refusals to expect, if the lower rate changed nothing, before the trial is judged
  expectedIfNone: { refused: 3, trouble: 8 }, // refusals to expect before the trial is judged, while none has come
  refusedIfNoFewer: 4, // refusals after which the trial is judged if their share is no smaller than before
  sameShare: { refused: 0.4, trouble: 0.25 }, // part of the old share that shows that they are not about the rate
  maxTrialMs: 60_000, // longest trial
  unsureRestMs: 5_000, // rest after a trial with some refusals, but too few to tell
  restMs: 20_000, // first rest after a trial that showed that they are about the rate; each further rest is twice as long
  maxRestMs: 600_000, // longest rest

  // Forgive the background
  forgiveFactor: 1.5, // refusals that are forgiven, as a multiple of the background
  minForgivable: 4, // forgivable refusals that can always be saved up
  forgivableMs: 4_000, // time whose background can be saved up
  minStartShare: 0.25, // lowest start of a ramp with a background, as a share of `low`
  backgroundRefusals: 20, // the background is the mean over about this many of its refusals
  maxBackgroundGrowth: 1.25, // largest background, as a multiple of the share that a trial found
  minBackground: 0.0003, // a smaller background counts as none
};

export function firstBlame(now: number): Blame {
  return {
    background: 0,
    foundShare: 0,
    forgivable: 0,
    recent: noRecentAnswers,
    earlyEnds: noEarlyEnds,
    trial: null,
    restUntilMs: 0,
    restMs: rules.restMs,
    errors: noErrors,
    lookedAtMs: now,
  };
}

/** Decides what the answers since the last update mean for the rate. `isHeldDown`: a ceiling is far below what is known. Pure. */
export function blame(before: Blame, rate: LearnedRate, sums: Sums, isHeldDown = false): Judged {
  const isThrottling = areErrorsThrottling(before.errors, sums.now);
  const errors = isHeldDown ? before.errors : updateErrors(before.errors, rate, sums);
  const raw = countAnswers(sums, isThrottling, rate.phase);
  const state = { ...before, errors, recent: updateRecent(before, rate, sums), lookedAtMs: sums.now };
  const isExempt = isThrottling && !areErrorsThrottling(errors, sums.now);
  if (isExempt) return restoreRate(state, before.errors, rate, raw, sums.now);
  if (state.trial !== null)
    return { ...evaluateTrial(state, state.trial, rate, sums), counts: { ...raw, refused: 0, currentRefused: 0 } };
  const { counts, forgivable } = forgive(state, raw, rate);
  const next = { ...state, forgivable, background: updateBackground(state, raw, rate) };
  const cause = chooseTrial(next, sums, isThrottling);
  if (cause === null) return { blame: next, counts, rate: null };
  return { ...startTrial(next, cause, rate, sums.now), counts };
}

/** Starts a trial, at a rate under the accepted rate. */
function startTrial(state: Blame, cause: Trial['cause'], rate: LearnedRate, now: number): Verdict {
  const { earlyEnds, recent } = state;
  const share = cause === 'refused' ? (earlyEnds.refused - 1) / earlyEnds.answers : recent.trouble / recent.answers;
  const low = Math.min(rate.low || rate.rate, rate.rate);
  const accepted =
    cause === 'refused'
      ? Math.min(low * (1 - share), acceptedPerSecondWithWaits(earlyEnds))
      : Math.min(low, acceptedPerSecondBeforeTrial(recent, rate, share)); // rates above low also cause errors
  const lower = step(rate, accepted * rules.trialFactor, 'ramp', now);
  const trial: Trial = { cause, sinceMs: now, answers: 0, refused: 0, share, rate: { ...rate, low } };
  return { blame: { ...state, trial, earlyEnds: noEarlyEnds }, rate: lower };
}

/** Returns the requests accepted per second, waits included. A limit that asks for waits accepts at least this rate. */
function acceptedPerSecondWithWaits({ answers, refused, openMs, waitedMs }: Blame['earlyEnds']): number {
  return waitedMs === 0
    ? Number.POSITIVE_INFINITY
    : evidence({ accepted: answers - refused, openMs, waitMs: waitedMs }).min;
}

/** Counts answers. Errors are not a reason to go faster, and not a reason to go slower until they are known to be throttling. */
function countAnswers(sums: Sums, isThrottling: boolean, phase: LearnedRate['phase']): Counts {
  const refusing = isThrottling ? 1 : 0;
  const taking = isThrottling || phase === 'seek' ? 0 : 1;
  return {
    accepted: sums.accepted + taking * sums.trouble,
    refused: sums.refused + refusing * sums.trouble,
    currentAccepted: sums.currentAccepted + taking * sums.currentTrouble,
    currentRefused: sums.currentRefused + refusing * sums.currentTrouble,
  };
}

/** Adds answers to the recent ones, which fade. Answers at another rate are dropped, because they say nothing now. */
function updateRecent(
  { recent, lookedAtMs }: Blame,
  { epoch, validFromMs, latencyMs }: LearnedRate,
  sums: Sums,
): Blame['recent'] {
  const openMs = Math.max(0, sums.now - Math.max(lookedAtMs, validFromMs + latencyMs)); // before this moment there are no answers
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
  const maxForgivable = Math.max(rules.minForgivable, (state.background * rate.rate * rules.forgivableMs) / 1_000);
  const forgivable = Math.min(maxForgivable, state.forgivable + rules.forgiveFactor * state.background * answers);
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
 * Lowers the start of a ramp with a background so far under `low` that no refusal there is about the rate, although some were forgiven when `low` was
 * found. Otherwise an overestimated background would hide the limit, and so prove itself.
 */
export function lowerRampStart(before: LearnedRate, after: LearnedRate, { background: share }: Blame): LearnedRate {
  if (share === 0 || !isNewRamp(before, after)) return after;
  const from = Math.min(after.from, after.low * Math.max(rules.minStartShare, 1 - 2 * rules.forgiveFactor * share));
  return { ...after, from, rate: from };
}

/** Updates the background, from answers at a rate that is surely accepted. */
function updateBackground(state: Blame, raw: Counts, rate: LearnedRate): number {
  const { background: share } = state;
  if (share === 0 || rate.rate > rate.low * (1 - rules.forgiveFactor * share)) return share;
  const answers = raw.currentAccepted + raw.currentRefused;
  if (answers === 0) return share;
  const kept = Math.exp((-answers * share) / rules.backgroundRefusals);
  const next = Math.min(
    rules.maxBackgroundGrowth * state.foundShare,
    kept * share + (1 - kept) * (raw.currentRefused / answers),
  );
  return next < rules.minBackground ? 0 : next;
}

/** Returns the requests accepted per second before a trial of errors. In a seek the rate is too new to be measured by its answers. */
function acceptedPerSecondBeforeTrial(
  { ms, accepted }: Blame['recent'],
  { phase, rate }: LearnedRate,
  share: number,
): number {
  return phase === 'seek' ? rate * (1 - share) : evidence({ accepted, openMs: ms }).max;
}

/** Returns the cause that is worth a trial, or null. */
function chooseTrial(state: Blame, sums: Sums, isThrottling: boolean): Trial['cause'] | null {
  const { recent, earlyEnds, restUntilMs } = state;
  if (sums.now < restUntilMs || sums.holdUntil > sums.now) return null;
  const ramps = earlyEnds.waitedMs > 0 ? rules.minEarlyRampsWithWaits : rules.minEarlyRamps;
  const isEarly = earlyEnds.ramps >= ramps && earlyEnds.refused >= rules.minEarlyRefused;
  if (isEarly && earlyEnds.refused > rules.minRefusedShare * earlyEnds.answers) return 'refused';
  const surely = recent.trouble - 2 * Math.sqrt(recent.trouble); // errors that did not come by chance
  const isWorth = recent.trouble > 0 && surely >= rules.minErrorShare * recent.answers;
  const isOutage = recent.trouble > rules.maxErrorShare * recent.answers;
  const isAsked = !isThrottling && canAskAboutErrors(state.errors, sums.now);
  return isWorth && !isOutage && sums.trouble > 0 && isAsked ? 'trouble' : null;
}

/** Adds a report to a trial, and judges the trial after enough answers. */
function evaluateTrial(state: Blame, trial: Trial, rate: LearnedRate, sums: Sums): Verdict {
  const { cause, share } = trial;
  const current = cause === 'refused' ? sums.currentRefused : sums.currentTrouble;
  const seen = {
    ...trial,
    answers: trial.answers + sums.currentAccepted + sums.currentRefused + sums.currentTrouble,
    refused: trial.refused + current,
  };
  const same = { ...rate, lookedAtMs: sums.now };
  const left = seen.refused / Math.max(1, seen.answers);
  const expected = seen.answers * share;
  const isEnded = seen.refused === 0 && expected >= rules.expectedIfNone[cause];
  const isUnchanged = seen.refused >= rules.refusedIfNoFewer && left >= share;
  const isTooLong = sums.now - trial.sinceMs > rules.maxTrialMs;
  const isJudged = expected >= rules.expectedToJudge[cause] || isEnded || isUnchanged || isTooLong;
  if (!isJudged) return { blame: { ...state, trial: seen }, rate: same };
  const hasSameShare = seen.refused >= 2 && left >= rules.sameShare[cause] * share;
  if (hasSameShare && (cause === 'trouble' || left < rules.maxRefusedShare))
    return forgiveAndRestore(state, seen, rate, left, sums.now);
  const errors = cause === 'trouble' && !isTooLong ? blameErrors(state.errors, rate.rate, sums.now) : state.errors;
  const restUntilMs = sums.now + (seen.refused > 0 ? rules.unsureRestMs : state.restMs);
  const restMs = Math.min(rules.maxRestMs, 2 * state.restMs);
  const low = rate.rate / rules.trialFactor;
  const high = Math.max(low, Math.min(seen.rate.rate, low * rateRules.fallRoom));
  return {
    blame: { ...state, errors, trial: null, restUntilMs, restMs },
    rate: startRamp(rate, { low, high }, noCost, sums.now, rate.cycleMs),
  };
}

/** Restores the rate of before a trial that changed nothing. If the trial was about refusals, the share that is left is forgiven from now on. */
function forgiveAndRestore(state: Blame, trial: Trial, rate: LearnedRate, left: number, now: number): Verdict {
  const restored = { ...trial.rate, epoch: rate.epoch, dropEpoch: rate.dropEpoch, lookedAtMs: now };
  const up = step({ ...restored, high: 0 }, trial.rate.low, 'seek', now);
  const rest = { restUntilMs: now + rules.restMs, restMs: rules.restMs };
  if (trial.cause === 'trouble') {
    const same = trial.rate.high > 0 ? startRamp(restored, trial.rate, noCost, now, rate.cycleMs) : up;
    return { blame: { ...state, trial: null, ...rest }, rate: same };
  }
  return { blame: { ...state, trial: null, background: left, foundShare: left, forgivable: 3, ...rest }, rate: up };
}

/** Restores the rate that seemed to end errors: it was by chance that none came at this rate. */
function restoreRate(state: Blame, before: ThrottlingErrors, rate: LearnedRate, counts: Counts, now: number): Judged {
  const { endedByPerSecond } = before;
  const up = step({ ...rate, low: endedByPerSecond, high: 0, lookedAtMs: now }, endedByPerSecond, 'seek', now);
  return { blame: { ...state, earlyEnds: noEarlyEnds, trial: null }, counts, rate: up };
}

/** Abandons a trial when nothing is accepted, because it cannot show anything now. */
export function abandonTrial(blame: Blame): Blame {
  return { ...blame, trial: null, earlyEnds: noEarlyEnds };
}

/** Counts ramps that are cut early: below the rate that is known to be accepted or, if all processes have to wait, before half of their time. */
export function countEarlyEnd(blame: Blame, before: LearnedRate, after: LearnedRate, seen: Observation): Blame {
  if (!isNewRamp(before, after) || before.phase !== 'ramp' || isResumedRamp(before)) return blame;
  const { accepted, refused } = before.sampleWindow;
  const bad = refused + seen.currentRefused;
  const answers = accepted + seen.currentAccepted + bad;
  const waitedMs = waitLeftMs(seen);
  const isMet = before.rate >= before.low && (waitedMs === 0 || before.rampedMs >= before.rampMs / 2);
  if (isMet && bad < rules.maxMetShare * answers) {
    const errors = blame.earlyEnds.ramps === 0 ? followLimit(blame.errors, before.low) : blame.errors;
    return { ...blame, errors, earlyEnds: noEarlyEnds };
  }
  if (bad > rules.maxRefusedShare * answers) return { ...blame, earlyEnds: noEarlyEnds };
  const { ramps, ...sums } = blame.earlyEnds;
  const earlyEnds = {
    ramps: ramps + 1,
    answers: sums.answers + answers,
    refused: sums.refused + bad,
    openMs: sums.openMs + before.sampleWindow.openMs,
    waitedMs: sums.waitedMs + waitedMs,
  };
  return { ...blame, earlyEnds };
}
