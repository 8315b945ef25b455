import type { Observation } from './learned-rate.ts';

/** Every number of the learned concurrency, with its unit. */
const rules = {
  min: 2,
  worthwhileShare: 0.18, // smallest gain of more connections: throughput must grow by connections^0.18, so by 13 % if the connections double
  stepDown: 1.25, // divisor of the limit in each step down
  firstRestMs: 2_500, // first rest until another limit is tried; with all connections in use each rest is twice as long
  maxRestMs: 30_000, // longest rest
  spreadMs: 110, // time until every process works with a new limit
  minWindowMs: 90, // shortest time in which a limit is judged
  minWindowLatencies: 1.5, // shortest time in which a limit is judged, in mean latencies; the longer of the two counts
  minWindowAnswers: 20, // fewest answers by which a limit is judged
  enoughAnswers: 50, // a limit is judged by this many answers; latencies vary, so fewer prove little
  maxWindowMs: 2_000, // longest time in which a limit is judged, by fewer answers if no more came
  starvedShare: 0.4, // share of calls with permits but without a free connection above which processes wait for connections
  busyShare: 0.5, // share of calls without computing time left above which answers take as long as the process takes to read them
  minBusyWindowMs: 300, // shortest time in which a process is judged to be busy
  minLatencyMs: 1, // below this, latencies differ because of the clock
  lossShare: 0.05, // share of time-outs and resets among the answers that lowers the limit
  lossFadeMs: 3_000, // time in which losses and answers fade
  lossFactor: 0.7, // factor on the limit after such losses
  lossRestMs: 5_000, // rest after such losses
  sameLossShare: 0.6, // part of the losses before the first cut that shows, after two cuts, that losses come at any limit
  lossyMs: 60_000, // first time for which losses then do not lower the limit; each further time is twice as long
  maxLossyMs: 1_800_000, // longest such time
};

/** The number of requests that the fleet may have in flight: plain JSON, changed by `learnInFlight` alone. Times are ms of the Redis clock. */
export type InFlight = {
  limit: number;
  /** Connections of all processes at the last update. */
  max: number;
  /** hold: no better limit is known · up, down: the last step changed the limit in this direction and is being judged. */
  trend: 'hold' | 'up' | 'down';
  /** The limit that the last step is compared with, and the mean latency of answers at that limit. */
  compared: Latency;
  lookedAtMs: number;
  /** Moment before which answers belong to the limit before. */
  judgeFromMs: number;
  restUntilMs: number;
  /** Length of the next rest. The first is short: the first trial comes while the target's queue still fills, and shows nothing. */
  restMs: number;
  /** Answers and losses at the present limit, which fade: at any limit, a few answers are lost. */
  losses: { answers: number; lost: number };
  /** Cuts in a row after losses, with the limit and the share of losses before the first. */
  cuts: { count: number; limit: number; share: number };
  /** Moment until which losses do not lower the limit, because fewer connections did not end them, and the length of the next such time. */
  lossyUntilMs: number;
  lossyMs: number;
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
};

const emptyWindow: Window = { openMs: 0, count: 0, sumMs: 0, reports: 0, starved: 0, busy: 0 };
const noLosses = { answers: 0, lost: 0 };
const noCuts = { count: 0, limit: 0, share: 0 };

/** Returns the state when nothing is known. `max`: connections of the fleet. */
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
    losses: noLosses,
    cuts: noCuts,
    lossyUntilMs: 0,
    lossyMs: rules.lossyMs,
    window: emptyWindow,
  };
}

/**
 * Learns how many requests in flight a target serves, from the latency of its answers. While processes wait for a free connection, throughput is
 * limit ÷ latency. The limit doubles as long as the throughput grows with it. If it does not, requests only queue, so the limit goes down until a
 * lower limit would cost throughput. While the processes themselves have no time left, latencies show their own load and not the target's. Then every
 * request that waits gets a connection. Pure; called with every update.
 */
export function learnInFlight(before: InFlight, seen: Observation, max: number): InFlight {
  const state = { ...adjustToFleet(before, max), lookedAtMs: seen.now };
  if (before.lookedAtMs < state.judgeFromMs) return state;
  const sinceMs = seen.now - before.lookedAtMs;
  state.losses = addToLosses(state.losses, seen, sinceMs);
  const window = addToWindow(state.window, seen, sinceMs);
  const now = { limit: state.limit, latencyMs: Math.max(rules.minLatencyMs, window.sumMs / Math.max(1, window.count)) };
  const isStarved = window.starved >= rules.starvedShare * window.reports;
  if (isLossy(state.losses) && seen.now >= state.lossyUntilMs) return cutAfterLoss(state, now);
  if (window.busy > 0 && window.openMs < rules.minBusyWindowMs) return { ...state, window };
  if (window.busy > 0 && window.busy >= rules.busyShare * window.reports) return growUnmeasured(state, now, isStarved);
  if (!isConclusive(window, now)) return { ...state, window };
  return evaluate({ ...state, window: emptyWindow }, now, isStarved);
}

/** Adds the connections of a process that joins. If all connections were in use, or fewer were being tried, waiting requests may use them at once. */
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
    return isHungry ? tryMoreConnections(state, now) : tryFewerConnections(state, now, now);
  }
  if (trend === 'down')
    return isWorthwhile(now, compared) ? restoreAndHold(state, now) : tryFewerConnections(state, now, now);
  if (!isWorthwhile(compared, now)) return tryFewerConnections(state, compared, now);
  return isHungry ? tryMoreConnections(state, now) : { ...state, trend: 'hold', restMs: rules.firstRestMs };
}

/** Whether more connections raise the throughput (limit ÷ latency) by a worthwhile part of their number. The smallest limit is always worthwhile. */
function isWorthwhile(fewer: Latency, more: Latency): boolean {
  if (fewer.limit === more.limit) return true;
  return 1 - Math.log(more.latencyMs / fewer.latencyMs) / Math.log(more.limit / fewer.limit) >= rules.worthwhileShare;
}

/** Adds connections while requests wait for one, because latencies show nothing. */
function growUnmeasured(state: InFlight, now: Latency, isStarved: boolean): InFlight {
  return isStarved && now.limit < state.max
    ? step(state, now.limit * 2, 'hold', now)
    : { ...state, trend: 'hold', window: emptyWindow };
}

/** Doubles the limit for requests that wait. */
function tryMoreConnections(state: InFlight, now: Latency): InFlight {
  return step({ ...state, compared: now, restMs: rules.firstRestMs }, now.limit * 2, 'up', now);
}

/** Tries whether fewer connections than `compared` do as well. */
function tryFewerConnections(state: InFlight, compared: Latency, now: Latency): InFlight {
  return step({ ...state, compared }, compared.limit / rules.stepDown, 'down', now);
}

/**
 * Lowers the limit after losses, at least to the limit before it was doubled, and keeps it for a while. If two cuts did not lower the share of losses,
 * they come at any limit, so the limit is restored.
 */
function cutAfterLoss(state: InFlight, now: Latency): InFlight {
  const share = state.losses.lost / state.losses.answers;
  const isRow = state.cuts.count > 0 && state.lookedAtMs < state.restUntilMs + rules.lossRestMs;
  const cuts = isRow ? state.cuts : { count: 0, limit: now.limit, share };
  if (cuts.count >= 2 && share >= rules.sameLossShare * cuts.share) {
    const lossyUntilMs = state.lookedAtMs + state.lossyMs;
    const lossyMs = Math.min(rules.maxLossyMs, 2 * state.lossyMs);
    return step({ ...state, losses: noLosses, cuts: noCuts, lossyUntilMs, lossyMs }, cuts.limit, 'hold', now);
  }
  const restUntilMs = state.lookedAtMs + rules.lossRestMs;
  const cut = now.limit * rules.lossFactor;
  const limit = state.trend === 'up' ? Math.min(cut, state.compared.limit) : cut;
  const counted = { ...cuts, count: cuts.count + 1 };
  return step({ ...state, restUntilMs, losses: noLosses, cuts: counted }, limit, 'hold', now);
}

/** Restores the limit before, for a while. With all connections in use each rest is longer, as each trial of fewer connections costs a little. */
function restoreAndHold(state: InFlight, now: Latency): InFlight {
  const { limit } = state.compared;
  const restUntilMs = state.lookedAtMs + state.restMs;
  const restMs = limit < state.max ? rules.firstRestMs : Math.min(rules.maxRestMs, 2 * state.restMs);
  return step({ ...state, restUntilMs, restMs }, limit, 'hold', now);
}

/** Sets a limit. Answers that come `now.latencyMs` later show what it does. */
function step(state: InFlight, limit: number, trend: InFlight['trend'], now: Latency): InFlight {
  return {
    ...state,
    limit: Math.min(state.max, Math.max(rules.min, Math.round(limit))), // a process has whole connections
    trend,
    judgeFromMs: state.lookedAtMs + rules.spreadMs + now.latencyMs,
    window: emptyWindow,
  };
}

function addToWindow(window: Window, seen: Observation, openMs: number): Window {
  return {
    openMs: window.openMs + openMs,
    count: window.count + seen.latency.count,
    sumMs: window.sumMs + seen.latency.sumMs,
    reports: window.reports + seen.reports,
    starved: window.starved + seen.starved,
    busy: window.busy + seen.busy,
  };
}

function addToLosses(losses: InFlight['losses'], { latency, lost }: Observation, sinceMs: number): InFlight['losses'] {
  const kept = Math.exp(-Math.max(0, sinceMs) / rules.lossFadeMs);
  return { answers: losses.answers * kept + latency.count + lost, lost: losses.lost * kept + lost };
}

/** Whether the target, or something on the way to it, is overloaded: more is lost than chance explains (two standard deviations). */
function isLossy({ answers, lost }: InFlight['losses']): boolean {
  const usual = rules.lossShare * answers;
  return answers >= rules.minWindowAnswers && lost >= usual + 2 * Math.sqrt(usual);
}

function isConclusive({ openMs, count }: Window, { latencyMs }: Latency): boolean {
  if (count < rules.minWindowAnswers || openMs < Math.max(rules.minWindowMs, rules.minWindowLatencies * latencyMs))
    return false;
  return count >= rules.enoughAnswers || openMs >= rules.maxWindowMs;
}
