import { rateRules as rules } from './rate-rules.ts';

/** What is known about the rate a target allows: plain JSON, changed by `control` and what it calls. Times are Redis clock, ms. */
export type LearnedRate = {
  /** seek: nothing known yet · measure: held while refusals are counted · ramp: creeping from under `low` past `high`. */
  phase: 'seek' | 'measure' | 'ramp';
  /** Permits a second now. */
  rate: number;
  /** The rate that the target is known to accept; 0 before anything is known. */
  low: number;
  /** The most that was accepted, requests a second over about a second; 0 before anything was. */
  answered: number;
  /** Where it is thought to refuse; 0 before it ever did. */
  high: number;
  /** Rises at each step of the rate. Answers to permits of an older epoch never cut the rate again. */
  epoch: number;
  /** Leases of epochs before this one are dropped: the rate fell so far that they would do harm. */
  dropEpoch: number;
  /** Permits used before this moment count as an older epoch's: leases paced at the old rate were still running. */
  validFromMs: number;
  lookedAtMs: number;
  /** How long the present ramp takes, and how much of that time has passed with the rate well used. */
  rampMs: number;
  rampedMs: number;
  /** Length of the cycles in which the target is used up and opens again; 0 = it has none. */
  cycleMs: number;
  /** Mean latency of accepted answers, fading within about a second. */
  latencyMs: number;
  /** Where its straight part begins and ends, a second, and how steep the climb behind it is: see `rateOn`. */
  from: number;
  to: number;
  climbMs: number;
  /** How many ramps began above the limit though they began at what was thought to be it: see ramp.ts. */
  early: number;
  /** How many more those were of late that ended too soon to say anything of a burst: that the limit is not known yet explains them as well. */
  short: number;
  /** The limit was no lower than this when a wait was asked for last; 0 = nothing is sure. */
  sure: number;
  /** The limit (a second) that was known well last, and has not fallen since; 0 = none. */
  known: number;
  /** When answers were much later than usual, and when a refusal was last put down to that; 0 = never. */
  lateAtMs: number;
  excusedAtMs: number;
  /** Requests sent, accepted and allowed, fading within about a second: whether there is work for the whole rate. */
  demand: { sent: number; accepted: number; allowed: number; reports: number; busy: number };
  /** What was seen since the last step. */
  sampleWindow: SampleWindow;
};

type SampleWindow = {
  /** Whether it began with a refusal, and the wait that the server asked for then. */
  isAfterRefusal: boolean;
  waitMs: number;
  /** Time in which requests might be sent, and how many might have been sent in it. */
  openMs: number;
  allowed: number;
  /** Answers to permits of this epoch. */
  accepted: number;
  refused: number;
  /** Answers to permits of any epoch: what came to be accepted while requests might be sent, and what the last refusal cost in the end. */
  acceptedInAll: number;
  refusedInAll: number;
};

const emptySampleWindow: SampleWindow = {
  isAfterRefusal: false,
  waitMs: 0,
  openMs: 0,
  allowed: 0,
  accepted: 0,
  refused: 0,
  acceptedInAll: 0,
  refusedInAll: 0,
};

/** Nothing is known: begins at the ceiling (requests a second) if there is one, else slowly. */
export function firstRate(now: number, ceiling: number | null): LearnedRate {
  return {
    phase: 'seek',
    rate: ceiling ?? rules.startPerSecond,
    low: 0,
    answered: 0,
    high: 0,
    epoch: 1,
    dropEpoch: 0,
    validFromMs: now,
    lookedAtMs: now,
    rampMs: 0,
    rampedMs: 0,
    cycleMs: 0,
    latencyMs: 0,
    from: 0,
    to: 0,
    climbMs: rules.climbMs,
    early: 0,
    short: 0,
    known: 0,
    sure: 0,
    lateAtMs: 0,
    excusedAtMs: 0,
    demand: { sent: 0, accepted: 0, allowed: 0, reports: 0, busy: 0 },
    sampleWindow: emptySampleWindow,
  };
}

/** A change of the rate at once, in a new epoch. */
export function step(state: LearnedRate, rate: number, phase: LearnedRate['phase'], fromMs: number): LearnedRate {
  const epoch = state.epoch + 1;
  return {
    ...state,
    rate,
    phase,
    epoch,
    dropEpoch: rate < state.rate * rules.dropBelow ? epoch : state.dropEpoch,
    validFromMs: rate < state.rate ? fromMs + rules.staleRateMs : fromMs,
    sampleWindow: emptySampleWindow,
  };
}

/** Whether a ramp begins, and is not the one that goes on after a wait. */
export function isNewRamp(before: LearnedRate, after: LearnedRate): boolean {
  return after.epoch !== before.epoch && after.phase === 'ramp' && after.excusedAtMs === before.excusedAtMs;
}

/** Whether a ramp went on after a wait: then the sample window is not that of all of it. */
export function hasGoneOn({ rampedMs, sampleWindow }: LearnedRate): boolean {
  return rampedMs > sampleWindow.openMs;
}

/** Adds an observation to the sample window and to the demand. `openMs`: the part of the time in which requests might be sent. */
export function seeMore(state: LearnedRate, seen: Observation, openMs: number): LearnedRate {
  const { sampleWindow, demand } = state;
  const spanMs = Math.max(0, seen.now - state.lookedAtMs);
  const demandKept = Math.exp(-spanMs / rules.demandMs);
  // The answers came over the whole span, so a part of them has faded: a steady rate reads the same however often it is looked at.
  const unfaded = spanMs > 0 ? ((1 - demandKept) * rules.demandMs) / spanMs : 1;
  const accepted = demand.accepted * demandKept + seen.accepted * unfaded;
  const allowed = (state.rate * openMs) / 1000;
  return {
    ...state,
    lookedAtMs: seen.now,
    latencyMs:
      seen.latency.count === 0
        ? state.latencyMs
        : demandKept * state.latencyMs + (1 - demandKept) * (seen.latency.sumMs / seen.latency.count),
    answered: Math.max(state.answered, (accepted * 1_000) / rules.demandMs),
    demand: {
      sent: demand.sent * demandKept + seen.sent,
      accepted,
      allowed: demand.allowed * demandKept + allowed,
      reports: demand.reports * demandKept + seen.reports,
      busy: demand.busy * demandKept + seen.busy,
    },
    sampleWindow: {
      isAfterRefusal: sampleWindow.isAfterRefusal,
      waitMs: sampleWindow.waitMs,
      openMs: sampleWindow.openMs + openMs,
      allowed: sampleWindow.allowed + allowed,
      accepted: sampleWindow.accepted + seen.currentAccepted,
      refused: sampleWindow.refused + seen.currentRefused,
      acceptedInAll: sampleWindow.acceptedInAll + (openMs >= rules.roundingMs ? seen.accepted : 0),
      refusedInAll: sampleWindow.refusedInAll + seen.refused,
    },
  };
}

/** Whether the rate was nearly all used of late: else clean answers say nothing about a higher one. */
export function isWellUsed({ demand }: LearnedRate): boolean {
  return (
    demand.sent >= (demand.busy > rules.busy * demand.reports ? rules.wellUsedBusy : rules.wellUsed) * demand.allowed
  );
}

/** The share of answers that let a request through. */
export function acceptedShare({ accepted, refused }: SampleWindow): number {
  return accepted / Math.max(1, accepted + refused);
}

/** The mean rate of accepted requests in this sample window, per second. */
export function acceptedRate(sampleWindow: SampleWindow): number {
  return (sampleWindow.allowed / Math.max(1, sampleWindow.openMs)) * 1000 * acceptedShare(sampleWindow);
}

/** How long the server still asks to wait, in ms. */
export function waitLeftMs({ now, blockedUntilMs }: Observation): number {
  return Math.max(0, blockedUntilMs - now);
}

/** What all processes observed of the target since the last update. Times are ms of the Redis clock. */
export type Observation = {
  now: number;
  /** The part of the time since the last update in which nothing might be sent: a Retry-After, an outage. */
  blockedMs: number;
  /** The end of a Retry-After that is in force or came with these answers; 0 when there is none. */
  blockedUntilMs: number;
  /** Answers to all permits; refused are those that the target turned down for want of permits of its own. */
  accepted: number;
  refused: number;
  /** Of those, the answers to permits of the present epoch. */
  currentAccepted: number;
  currentRefused: number;
  /** Requests sent. */
  sent: number;
  /** Of accepted answers, in milliseconds. */
  latency: { count: number; sumMs: number };
  /** Calls of processes, and those that had a permit but no free in-flight slot since the call before. */
  reports: number;
  starved: number;
  /** Calls of processes that had next to no idle time since the call before. */
  busy: number;
  /** Time-outs and connections that were reset. */
  lost: number;
};
