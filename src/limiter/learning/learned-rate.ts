import { rateRules as rules } from './rate-rules.ts';

/** The knowledge about the rate that a target allows: plain JSON, changed by `control` and what it calls. Times are ms of the Redis clock. */
export type LearnedRate = {
  /** seek: nothing is known yet · measure: the rate is held while refusals are counted · ramp: the rate creeps from under `low` past `high`. */
  phase: 'seek' | 'measure' | 'ramp';
  /** Permits per second now. */
  rate: number;
  /** Rate that the target is known to accept; 0 before anything is known. */
  low: number;
  /** Highest number of requests per second that was accepted, over about a second; 0 before anything was. */
  answered: number;
  /** Rate at which the target probably refuses; 0 before it ever did. */
  high: number;
  /** Number that rises at each step of the rate. Answers to permits of an older epoch never lower the rate again. */
  epoch: number;
  /** Epoch before which leases are dropped, because the rate fell so far that they would do harm. */
  dropEpoch: number;
  /** Moment before which used permits count as an older epoch's, because leases paced at the old rate were still running. */
  validFromMs: number;
  lookedAtMs: number;
  /** Length of the present ramp. */
  rampMs: number;
  /** Time that the ramp has lasted so far; only time in which the rate was well used counts. */
  rampedMs: number;
  /** Length of the cycles in which the target is used up and accepts again; 0 = it has none. */
  cycleMs: number;
  /** Mean latency of accepted answers, fading within about a second. */
  latencyMs: number;
  /** Rate at the start of the ramp's straight part, per second. */
  from: number;
  /** Rate at the end of the straight part, per second. */
  to: number;
  /** Steepness of the climb after it: see `rateOn`. */
  climbMs: number;
  /** Ramps that began above the limit although they began at what seemed to be the limit: see ramp.ts. */
  earlyRamps: number;
  /** Further such ramps that ended too soon to show anything about a burst: perhaps the limit was just not known yet. */
  shortRamps: number;
  /** Rate that the limit was not below when the server last asked for a wait; 0 = nothing is sure. */
  sure: number;
  /** Limit, per second, that was last known well and has not fallen since; 0 = none. */
  known: number;
  /** Moment when answers were last much later than usual; 0 = never. */
  lateAtMs: number;
  /** Moment when a refusal was last excused by late answers; 0 = never. */
  excusedAtMs: number;
  /** Requests sent, accepted and allowed, fading within about a second. They show whether there is work for the whole rate. */
  demand: { sent: number; accepted: number; allowed: number; reports: number; busy: number };
  /** Observations since the last step. */
  sampleWindow: SampleWindow;
};

type SampleWindow = {
  /** Whether it began with a refusal. */
  isAfterRefusal: boolean;
  /** The wait that the server asked for with that refusal. */
  waitMs: number;
  /** Time in which sending was allowed. */
  openMs: number;
  /** Requests that the rate allowed in this time. */
  allowed: number;
  /** Accepted answers to permits of this epoch. */
  accepted: number;
  /** Refused answers to permits of this epoch. */
  refused: number;
  /** Accepted answers to permits of any epoch, while sending was allowed. */
  acceptedTotal: number;
  /** Refused answers to permits of any epoch: the cost of the last refusal in the end. */
  refusedTotal: number;
};

const emptySampleWindow: SampleWindow = {
  isAfterRefusal: false,
  waitMs: 0,
  openMs: 0,
  allowed: 0,
  accepted: 0,
  refused: 0,
  acceptedTotal: 0,
  refusedTotal: 0,
};

/** Returns the state when nothing is known. It begins at the ceiling (requests per second) if there is one, otherwise slowly. */
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
    earlyRamps: 0,
    shortRamps: 0,
    known: 0,
    sure: 0,
    lateAtMs: 0,
    excusedAtMs: 0,
    demand: { sent: 0, accepted: 0, allowed: 0, reports: 0, busy: 0 },
    sampleWindow: emptySampleWindow,
  };
}

/** Changes the rate at once, in a new epoch. */
export function step(state: LearnedRate, rate: number, phase: LearnedRate['phase'], fromMs: number): LearnedRate {
  const epoch = state.epoch + 1;
  return {
    ...state,
    rate,
    phase,
    epoch,
    dropEpoch: rate < state.rate * rules.dropBelowShare ? epoch : state.dropEpoch,
    validFromMs: rate < state.rate ? fromMs + rules.staleRateMs : fromMs,
    sampleWindow: emptySampleWindow,
  };
}

/** Whether a new ramp begins. A ramp that resumes after a wait is not new. */
export function isNewRamp(before: LearnedRate, after: LearnedRate): boolean {
  return after.epoch !== before.epoch && after.phase === 'ramp' && after.excusedAtMs === before.excusedAtMs;
}

/** Whether the ramp resumed after a wait. Then the sample window covers only a part of it. */
export function isResumedRamp({ rampedMs, sampleWindow }: LearnedRate): boolean {
  return rampedMs > sampleWindow.openMs;
}

/** Adds an observation to the sample window and to the demand. `openMs`: the part of the time in which sending was allowed. */
export function addObservation(state: LearnedRate, seen: Observation, openMs: number): LearnedRate {
  const { sampleWindow, demand } = state;
  const spanMs = Math.max(0, seen.now - state.lookedAtMs);
  const demandKept = Math.exp(-spanMs / rules.demandMs);
  const useKept = Math.exp(-spanMs / Math.max(rules.demandMs, (1_000 * rules.demandRequests) / state.rate));
  // The answers came over the whole span, so a part of them has faded. With this factor a steady rate reads the same at any interval of updates.
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
      sent: demand.sent * useKept + seen.sent,
      accepted,
      allowed: demand.allowed * useKept + allowed,
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
      acceptedTotal: sampleWindow.acceptedTotal + (openMs >= rules.roundingMs ? seen.accepted : 0),
      refusedTotal: sampleWindow.refusedTotal + seen.refused,
    },
  };
}

/** Whether nearly the whole rate was used recently. If not, clean answers are no evidence for a higher rate. */
export function isWellUsed({ demand }: LearnedRate): boolean {
  return (
    demand.sent >=
    (demand.busy > rules.busyShare * demand.reports ? rules.wellUsedShareWhenBusy : rules.wellUsedShare) *
      demand.allowed
  );
}

/** Returns the accepted share of the answers. */
export function acceptedShare({ accepted, refused }: SampleWindow): number {
  return accepted / Math.max(1, accepted + refused);
}

/** Returns the mean rate of accepted requests in this sample window, per second. */
export function acceptedRate(sampleWindow: SampleWindow): number {
  return (sampleWindow.allowed / Math.max(1, sampleWindow.openMs)) * 1000 * acceptedShare(sampleWindow);
}

/** Returns the rest of the wait that the server asked for, in ms. */
export function waitLeftMs({ now, blockedUntilMs }: Observation): number {
  return Math.max(0, blockedUntilMs - now);
}

/** The observations of all processes since the last update. Times are ms of the Redis clock. */
export type Observation = {
  now: number;
  /** How much later than usual observations may come, because Redis is far away. */
  awayMs?: number;
  /** Part of the time since the last update in which sending was not allowed: a Retry-After, an outage. */
  blockedMs: number;
  /** End of a Retry-After that is in force or came with these answers; 0 = none. */
  blockedUntilMs: number;
  /** Accepted answers to all permits. */
  accepted: number;
  /** Answers to all permits by which the target refused a request because of its limit. */
  refused: number;
  /** Accepted answers to permits of the present epoch. */
  currentAccepted: number;
  /** Refused answers to permits of the present epoch. */
  currentRefused: number;
  /** Requests sent. */
  sent: number;
  /** Latencies of accepted answers. */
  latency: { count: number; sumMs: number };
  /** Calls of processes. */
  reports: number;
  /** Calls of processes that had a permit but no free connection since the call before. */
  starved: number;
  /** Calls of processes that had almost no idle time since the call before. */
  busy: number;
  /** Time-outs and reset connections. */
  lost: number;
};
