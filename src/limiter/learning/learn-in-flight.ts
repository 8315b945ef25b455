import type { Observation } from './learned-rate.ts';

/** Every number of the learned concurrency, with its unit. */
const rules = {
  min: 2,
  worthwhile: 0.18, // more slots must bring this part of their number in throughput: a doubling 2^0.18, so 13 %
  stepDown: 1.25, // if they do not, the limit goes down in steps of this factor
  firstRestMs: 2_500, // until another limit is tried; with all slots twice as long each time, …
  maxRestMs: 30_000, // … at most
  spreadMs: 110, // until every process works with a new limit
  windowMs: 90, // the least time in which a limit is judged, …
  windowLatencies: 1.5, // … also counted in mean latencies, …
  windowAnswers: 20, // … and the fewest answers
  hungry: 0.4, // share of the calls in which a process had permits but no free slot
  busy: 0.5, // share of the calls in which a process had no computing time left: its answers take as long as it takes to read them
  minLatencyMs: 1, // below this, latencies differ for reasons of the clock
  lossShare: 0.05, // after time-outs or resets of this part of the answers, …
  lossCut: 0.7, // … the limit is multiplied by this
};

/** How many requests the fleet has in flight: plain JSON, changed by `learnInFlight` alone. Times are Redis clock, ms. */
export type InFlight = {
  limit: number;
  /** Slots of all processes that were there last. */
  max: number;
  /** hold: neither more nor less is known to be better · up, down: the last step went that way and is being judged. */
  trend: 'hold' | 'up' | 'down';
  /** What the last step is compared with: a limit, and the mean latency of answers at it. */
  compared: Latency;
  lookedAtMs: number;
  /** Answers of before this moment belong to the limit before. */
  judgeFromMs: number;
  restUntilMs: number;
  /** How long the next rest lasts: the first trial comes while the target's queue still fills, and shows nothing. */
  restMs: number;
  window: Window;
};

type Latency = { limit: number; latencyMs: number };

type Window = {
  openMs: number;
  count: number;
  sumMs: number;
  reports: number;
  starved: number;
  busy: number;
  lost: number;
};

const emptyWindow: Window = { openMs: 0, count: 0, sumMs: 0, reports: 0, starved: 0, busy: 0, lost: 0 };

/** Nothing is known. `max`: slots of the fleet. */
export function firstInFlight(now: number, max: number): InFlight {
  return {
    limit: max,
    max,
    trend: 'hold',
    compared: { limit: max, latencyMs: 0 },
    lookedAtMs: now,
    judgeFromMs: now,
    restUntilMs: now,
    restMs: rules.firstRestMs,
    window: emptyWindow,
  };
}

/**
 * Learns how many requests in flight a target serves, from the latency of its answers. While processes wait for a free slot, throughput is
 * limit ÷ latency. The limit doubles as long as that brings more throughput. If it does not, requests only queue, so the limit goes down until
 * less would cost throughput. While the processes themselves have no time left, latencies show their load and not the target's: then every
 * request that waits gets a slot. Pure; called with every update.
 */
export function learnInFlight(before: InFlight, seen: Observation, max: number): InFlight {
  const state = { ...adjustToFleet(before, max), lookedAtMs: seen.now };
  if (before.lookedAtMs < state.judgeFromMs) return state;
  const window = widen(state.window, seen, seen.now - before.lookedAtMs);
  const now = { limit: state.limit, latencyMs: Math.max(rules.minLatencyMs, window.sumMs / Math.max(1, window.count)) };
  const isStarved = window.starved >= rules.hungry * window.reports;
  if (isLossy(window)) return cut(state, now);
  if (window.busy > 0 && window.busy >= rules.busy * window.reports) return growUnmeasured(state, now, isStarved);
  if (!isConclusive(window, now)) return { ...state, window };
  return evaluate({ ...state, window: emptyWindow }, now, isStarved);
}

/** A process that joins brings slots: if all were in use, or fewer were just being tried, requests that wait may use more at once. */
function adjustToFleet(before: InFlight, max: number): InFlight {
  const hadAll = before.limit >= before.max || before.trend === 'down';
  const state = { ...before, max, limit: Math.min(before.limit, max) };
  if (!hadAll || max <= before.max) return state;
  return { ...state, trend: 'hold', restUntilMs: before.lookedAtMs, window: emptyWindow };
}

function evaluate(state: InFlight, now: Latency, isStarved: boolean): InFlight {
  const { compared, trend } = state;
  const isHungry = isStarved && now.limit < state.max;
  if (trend === 'hold') {
    if (!isStarved || state.lookedAtMs < state.restUntilMs) return state;
    return isHungry ? double(state, now) : lower(state, now, now);
  }
  if (trend === 'down') return isWorthwhile(now, compared) ? rest(state, now) : lower(state, now, now);
  if (!isWorthwhile(compared, now)) return lower(state, compared, now);
  return isHungry ? double(state, now) : { ...state, trend: 'hold', restMs: rules.firstRestMs };
}

/** Whether more slots bring throughput, which is limit ÷ latency, by a worthwhile part of their number. The fewest that are tried are worthwhile. */
function isWorthwhile(fewer: Latency, more: Latency): boolean {
  if (fewer.limit === more.limit) return true;
  return 1 - Math.log(more.latencyMs / fewer.latencyMs) / Math.log(more.limit / fewer.limit) >= rules.worthwhile;
}

/** Latencies show nothing: more slots while requests wait for one. */
function growUnmeasured(state: InFlight, now: Latency, isStarved: boolean): InFlight {
  return isStarved && now.limit < state.max
    ? step(state, now.limit * 2, 'hold', now)
    : { ...state, trend: 'hold', window: emptyWindow };
}

/** More slots for requests that wait. */
function double(state: InFlight, now: Latency): InFlight {
  return step({ ...state, compared: now, restMs: rules.firstRestMs }, now.limit * 2, 'up', now);
}

/** Whether fewer slots than `compared` do as well. */
function lower(state: InFlight, compared: Latency, now: Latency): InFlight {
  return step({ ...state, compared }, compared.limit / rules.stepDown, 'down', now);
}

/** Fewer, and no more for a while. */
function cut(state: InFlight, now: Latency): InFlight {
  const restUntilMs = state.lookedAtMs + rules.firstRestMs;
  return step({ ...state, restUntilMs }, now.limit * rules.lossCut, 'hold', now);
}

/** Back to the limit before, for a while: with all slots ever longer, since each trial of fewer costs a little. */
function rest(state: InFlight, now: Latency): InFlight {
  const { limit } = state.compared;
  const restUntilMs = state.lookedAtMs + state.restMs;
  const restMs = limit < state.max ? rules.firstRestMs : Math.min(rules.maxRestMs, 2 * state.restMs);
  return step({ ...state, restUntilMs, restMs }, limit, 'hold', now);
}

/** `now.latencyMs` later, answers show what the new limit does. */
function step(state: InFlight, limit: number, trend: InFlight['trend'], now: Latency): InFlight {
  return {
    ...state,
    limit: Math.min(state.max, Math.max(rules.min, Math.round(limit))), // a process has whole slots
    trend,
    judgeFromMs: state.lookedAtMs + rules.spreadMs + now.latencyMs,
    window: emptyWindow,
  };
}

function widen(window: Window, seen: Observation, openMs: number): Window {
  return {
    openMs: window.openMs + openMs,
    count: window.count + seen.latency.count,
    sumMs: window.sumMs + seen.latency.sumMs,
    reports: window.reports + seen.reports,
    starved: window.starved + seen.starved,
    busy: window.busy + seen.busy,
    lost: window.lost + seen.lost,
  };
}

/** Whether the target, or something on the way to it, has more than it can bear. */
function isLossy({ count, lost }: Window): boolean {
  return count + lost >= rules.windowAnswers && lost >= rules.lossShare * (count + lost);
}

function isConclusive({ openMs, count }: Window, { latencyMs }: Latency): boolean {
  return count >= rules.windowAnswers && openMs >= Math.max(rules.windowMs, rules.windowLatencies * latencyMs);
}
