import type { Observation } from './learned-rate.ts';

/** Every number of the learned concurrency, with its unit. */
const rules = {
  least: 2,
  worthwhile: 0.18, // doubling must bring this part of its size in throughput: 2^0.18, so 13 %
  stepDown: 1.25, // after a doubling that did not, the limit goes down in steps of this factor, …
  dear: 0.2, // … until one costs this part of its size in throughput, …
  deepest: 2, // … or the limit is this factor lower than before
  firstRestMs: 2_500, // until fewer than all are tried again, which costs a little; twice as late each time, …
  restAtMostMs: 30_000, // … at most
  restMs: 5_000, // until the next doubling is tried, once neither more nor less was better
  spreadMs: 110, // until every process works with a new limit
  windowMs: 90, // the least time in which a limit is judged, …
  windowLatencies: 1.5, // … also counted in mean latencies, …
  windowAnswers: 20, // … the fewest answers, …
  surely: 0.03, // … and the greatest standard error of their mean latency as a share of it, …
  longestWindowMs: 2_000, // … unless it took so long
  hungry: 0.4, // share of the calls in which a process had permits but no free slot
  busy: 0.5, // share of the calls in which a process had no computing time left, …
  busyWindowMs: 300, // … over this time: its answers take as long as it takes to read them
  leastLatencyMs: 1, // below this, latencies differ for reasons of the clock
  lossCut: 0.7, // after time-outs or resets of …
  lossShare: 0.05, // … this part of the answers, …
  lossMs: 3_000, // … over about this time, …
  lossRestMs: 1_000, // … once in this time
};

/** How many requests the fleet has in flight: plain JSON, changed by `learnInFlight` alone. Times are Redis clock, ms. */
export type InFlight = {
  limit: number;
  /** What the processes that were there last may have in flight at all. */
  most: number;
  /** hold: neither more nor less is known to be better · up, down: the last step went that way and is being judged. */
  trend: 'hold' | 'up' | 'down';
  /** Mean latency at the limit before the last step. */
  latencyMs: number;
  /** Steps down end here. */
  floor: number;
  /** Raised while latencies showed nothing: fewer may be as good. */
  isBlind: boolean;
  lookedAtMs: number;
  /** Answers of before this moment belong to the limit before. */
  judgeFromMs: number;
  restUntilMs: number;
  /** How long the next rest with all slots lasts: the first trial comes while the target's queue still fills, and shows nothing. */
  restAtMostMs: number;
  lossAtMs: number;
  /** Answers and losses, fading within some seconds: now and then an answer is lost on any way. */
  losses: { answers: number; lost: number };
  window: Window;
};

type Window = {
  openMs: number;
  count: number;
  sumMs: number;
  squares: number;
  reports: number;
  starved: number;
  busy: number;
};

const emptyWindow: Window = { openMs: 0, count: 0, sumMs: 0, squares: 0, reports: 0, starved: 0, busy: 0 };

/** Nothing is known. `most`: what the fleet may have in flight at all. */
export function firstInFlight(now: number, most: number): InFlight {
  return {
    limit: most,
    most,
    trend: 'hold',
    latencyMs: 0,
    floor: rules.least,
    isBlind: true,
    lookedAtMs: now,
    judgeFromMs: now,
    restUntilMs: now,
    restAtMostMs: rules.firstRestMs,
    lossAtMs: 0,
    losses: { answers: 0, lost: 0 },
    window: emptyWindow,
  };
}

/**
 * Learns how many requests in flight a target serves, from the latency of its answers: while processes wait for a free
 * slot, throughput is limit ÷ latency. Doubles as long as that brings more throughput; where it brought next to nothing the
 * requests only queued, so the limit goes down again until less would cost throughput. While the processes themselves have no time
 * left, latencies show their load and not that of the target: then a waiting request gets a slot, and once the processes have time again, fewer are
 * tried. Pure; called with every update.
 */
export function learnInFlight(before: InFlight, seen: Observation, most: number): InFlight {
  const state = { ...ofFleet(before, most), lookedAtMs: seen.now, losses: fade(before, seen) };
  const isLossy = seen.lost > 0 && state.losses.lost >= rules.lossShare * state.losses.answers;
  if (isLossy && seen.now >= before.lossAtMs + rules.lossRestMs) return afterLoss(state, seen.now);
  if (before.lookedAtMs < state.judgeFromMs) return state;
  const window = widen(state.window, seen, seen.now - before.lookedAtMs);
  const latencyMs = Math.max(rules.leastLatencyMs, window.sumMs / Math.max(1, window.count));
  const isStarved = window.starved >= rules.hungry * window.reports;
  if (window.busy > 0 && window.openMs < rules.busyWindowMs) return { ...state, window };
  if (isBusy(window)) return goBlind({ ...state, window: emptyWindow }, isStarved, latencyMs);
  if (!isConclusive(window, latencyMs)) return { ...state, window };
  return evaluate({ ...state, window: emptyWindow }, latencyMs, isStarved);
}

/** A process that joins brings slots: where all were in use, also where fewer were just being tried, requests that wait may have more at once. */
function ofFleet(before: InFlight, most: number): InFlight {
  const hadAll = before.limit >= before.most || (before.trend === 'down' && before.floor === rules.least);
  const state = { ...before, most, limit: Math.min(before.limit, most) };
  if (!hadAll || most <= before.most) return state;
  return { ...state, trend: 'hold', isBlind: false, restUntilMs: before.lookedAtMs, window: emptyWindow };
}

function evaluate(state: InFlight, latencyMs: number, isStarved: boolean): InFlight {
  const isHungry = isStarved && state.limit < state.most;
  if (state.trend === 'hold') {
    if (!isStarved || state.lookedAtMs < state.restUntilMs) return state;
    return state.isBlind || !isHungry ? tryLess(state, latencyMs) : double(state, latencyMs);
  }
  if (state.trend === 'up') {
    if (throughputGain(state.latencyMs, latencyMs, 2) < rules.worthwhile) return turn(state, latencyMs);
    return isHungry ? double(state, latencyMs) : { ...state, trend: 'hold' };
  }
  const loss = throughputGain(latencyMs, state.latencyMs, rules.stepDown);
  const dear = state.floor > rules.least ? rules.dear : rules.worthwhile; // no doubling has shown that it goes with fewer
  return loss < dear ? stepDown(state, latencyMs) : rest(state, latencyMs);
}

/** Latencies show nothing: more slots while requests wait for one. */
function goBlind(state: InFlight, isStarved: boolean, latencyMs: number): InFlight {
  if (!isStarved || state.limit >= state.most) return { ...state, trend: 'hold' };
  return change({ ...state, isBlind: true, latencyMs }, state.limit * 2, 'hold', latencyMs);
}

/** What was given blindly may be more than the target serves. */
function tryLess(state: InFlight, latencyMs: number): InFlight {
  const seeing = { ...state, isBlind: false, floor: rules.least, latencyMs };
  return change(seeing, state.limit / rules.stepDown, 'down', latencyMs);
}

/** More slots for requests that wait. */
function double(state: InFlight, latencyMs: number): InFlight {
  return change({ ...state, latencyMs }, state.limit * 2, 'up', latencyMs);
}

/** The doubling brought nothing: back, and one step lower to see whether even less would do. */
function turn(state: InFlight, latencyMs: number): InFlight {
  const limit = state.limit / 2;
  const floor = limit / rules.deepest;
  return change({ ...state, floor }, limit / rules.stepDown, 'down', latencyMs);
}

/** Less was as good: try still less, but not far below what was good before. */
function stepDown(state: InFlight, latencyMs: number): InFlight {
  const limit = state.limit / rules.stepDown;
  if (limit < state.floor) return { ...state, trend: 'hold', restUntilMs: state.lookedAtMs + rules.restMs };
  return change({ ...state, latencyMs }, limit, 'down', latencyMs);
}

/** Less costs throughput: back to the last limit, and stay there for a while. */
function rest(state: InFlight, latencyMs: number): InFlight {
  const limit = state.limit * rules.stepDown;
  if (limit < state.most)
    return change({ ...state, restUntilMs: state.lookedAtMs + rules.restMs }, limit, 'hold', latencyMs);
  const restUntilMs = state.lookedAtMs + state.restAtMostMs;
  const restAtMostMs = Math.min(rules.restAtMostMs, 2 * state.restAtMostMs);
  return change({ ...state, restUntilMs, restAtMostMs }, limit, 'hold', latencyMs);
}

function fade({ losses, lookedAtMs }: InFlight, { now, latency, lost }: Observation): InFlight['losses'] {
  const kept = Math.exp(-(now - lookedAtMs) / rules.lossMs);
  return { answers: losses.answers * kept + latency.count + lost, lost: losses.lost * kept + lost };
}

/** Time-outs and resets: the target, or something on the way to it, has more than it can bear. */
function afterLoss(state: InFlight, now: number): InFlight {
  const next = { ...state, lossAtMs: now, restUntilMs: now + rules.restMs };
  return change(next, state.limit * rules.lossCut, 'hold', state.latencyMs);
}

function change(state: InFlight, limit: number, trend: InFlight['trend'], latencyMs: number): InFlight {
  const judgeFromMs = state.lookedAtMs + rules.spreadMs + latencyMs;
  return {
    ...state,
    limit: Math.min(state.most, Math.max(rules.least, limit)),
    trend,
    judgeFromMs,
    window: emptyWindow,
  };
}

/** How much throughput (limit ÷ latency) more slots bring: 1 = as much as slots, 0 = nothing, below 0 = they cost some. */
function throughputGain(latencyBeforeMs: number, latencyMs: number, factor: number): number {
  return 1 - Math.log(latencyMs / latencyBeforeMs) / Math.log(factor);
}

function widen(window: Window, seen: Observation, openMs: number): Window {
  return {
    openMs: window.openMs + openMs,
    count: window.count + seen.latency.count,
    sumMs: window.sumMs + seen.latency.sumMs,
    squares: window.squares + seen.latency.squares,
    reports: window.reports + seen.reports,
    starved: window.starved + seen.starved,
    busy: window.busy + seen.busy,
  };
}

function isBusy({ reports, busy }: Window): boolean {
  return busy > 0 && busy >= rules.busy * reports;
}

function isConclusive({ openMs, count, squares }: Window, latencyMs: number): boolean {
  if (count < rules.windowAnswers || openMs < Math.max(rules.windowMs, rules.windowLatencies * latencyMs)) return false;
  const error = Math.sqrt(Math.max(0, squares / count - latencyMs ** 2) / count);
  return error <= rules.surely * latencyMs || openMs >= rules.longestWindowMs;
}
