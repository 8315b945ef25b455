import { latencyAt } from '../ledger/measures.ts';
import { isFinalized, type Run } from '../ledger/run.ts';
import { idOutcomes, sentOutcomes } from '../model/outcome.ts';
import { binSums, bucketsOfOne, latencyBuckets, type runTotals, type sliceSums } from './history.lua.ts';

/** The work of one process for a run in one second, by when requests were sent. `second`: since 1970, by the clock of Redis. */
export type Slice = Record<(typeof sliceSums)[number], number> & { second: number; latencies: number[] };

/** The recorded work for a run between two seconds. */
export type Bin = Record<(typeof binSums)[number], number> & { latencies: number[] };

/** The history of a run as Redis has it at one moment. */
export type RecordedHistory = {
  now: number; // ms since 1970
  seconds: number; // the width of a bin
  totals: Record<(typeof runTotals)[number], number>;
  bins: (Bin & { start: number })[]; // oldest first; `start`: seconds since 1970. There is no bin for a time in which no process worked
};

/**
 * A fixed bin of whole seconds, by when requests were sent. Rates are per second of the bin; null = nothing was measured, or the bin is open.
 */
export type HistoryPoint = {
  from: number; // ms since 1970
  to: number;
  isOpen: boolean; // it has not ended, or not all its work is recorded yet
  activeMs: number; // the time in which at least one process worked
  requests: number;
  refused: number; // throttled requests
  retried: number; // answers after which an id was tried again
  waitedMs: number; // part of `activeMs`: no request was allowed
  achieved: number | null; // without throttled requests
  allowed: number | null; // on average, while a limit was known
  inFlight: number | null; // on average, by how long the answers took
  takeovers: number; // chunks of processes that never returned them
  counts: Readonly<Record<string, number>>; // ids by outcome; below 0 if better evidence replaced an outcome
  latencyMs: { p50: number; p95: number } | null;
};

/** The outcomes that a point counts, in the order of the counters. `not_attempted` is missing: it has no time at which it happened. */
export const pointOutcomes = sentOutcomes.toSorted((a, b) => idOutcomes.indexOf(a) - idOutcomes.indexOf(b));

/** The time after which a bin is complete, in ms: processes record their work once a second, and until then a bin is open. */
const recordedAfterMs = 2_000;

/** The history of a run, bin by bin. Only here does recorded work become rates. The sums of the points equal the sums of the run. Pure. */
export function toPoints(history: RecordedHistory, run: Pick<Run, 'state' | 'changedAt' | 'endedAt'>): HistoryPoint[] {
  const isRunning = run.state === 'running';
  const until = isRunning ? history.now : isFinalized(run.state) ? run.endedAt : run.changedAt;
  const widthMs = 1_000 * history.seconds;
  const bins = completeBins(history, isRunning, until);
  const retried = retriedUntil(bins);
  return bins.map((bin, i) => {
    const to = 1_000 * bin.start + widthMs;
    const isOpen = isRunning && to > history.now - recordedAfterMs;
    return pointOf(bin, { to, widthMs, isOpen, retried: retried[i]! - (retried[i - 1] ?? 0) });
  });
}

/** The points whose work is all recorded, which a chart may draw. Pure. */
export function closedPoints(points: readonly HistoryPoint[]): HistoryPoint[] {
  return points.filter(({ isOpen }) => !isOpen);
}

/** A count as a rate over the whole bin. Pure. */
export function ratePerSecond(n: number, { from, to }: Pick<HistoryPoint, 'from' | 'to'>): number {
  return (1_000 * Math.max(0, n)) / (to - from);
}

type Bins = RecordedHistory['bins'];

/**
 * The bins, completed with outcomes that the run has counted and no process has recorded. While the run is running, these belong to the end, which is
 * open. Later they are the work that killed processes did not record. Its time is unknown, so it is spread like the rest.
 */
function completeBins({ seconds, totals, bins }: RecordedHistory, isRunning: boolean, until: number): Bins {
  const missing = Object.fromEntries(
    [...sentOutcomes, 'takeovers' as const].map((name) => [name, totals[name] - sumOf(bins, name)]),
  ) as typeof totals;
  if (Object.values(missing).every((n) => n === 0)) return bins;
  const start = Math.floor(until / (1_000 * seconds)) * seconds;
  const last = bins.at(-1);
  let all =
    last !== undefined && (last.start >= start || !isRunning) ? bins : [...bins, { ...zeroSums(binSums), start }];
  for (const [name, n] of Object.entries(missing) as [keyof typeof totals, number][]) {
    if (n === 0) continue;
    const isSpread = !isRunning && name !== 'takeovers' && sumOf(bins, name) > 0;
    all = isSpread ? spread(all, name, n) : [...all.slice(0, -1), { ...all.at(-1)!, [name]: all.at(-1)![name] + n }];
  }
  return all;
}

/** Zero for each of these sums, and for each bucket of latencies. */
export function zeroSums<Name extends string>(names: readonly Name[]): Record<Name, number> & { latencies: number[] } {
  const sums = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
  return { ...sums, latencies: new Array<number>(latencyBuckets).fill(0) };
}

function sumOf(bins: Bins, name: (typeof binSums)[number]): number {
  return bins.reduce((sum, bin) => sum + bin[name], 0);
}

/** Adds `n` to the bins in proportion to what they have, in whole numbers. */
function spread(bins: Bins, name: (typeof runTotals)[number], n: number): Bins {
  const sum = sumOf(bins, name);
  let [seen, given] = [0, 0];
  return bins.map((bin) => {
    seen += bin[name];
    const more = Math.round((n * seen) / sum) - given;
    given += more;
    return { ...bin, [name]: bin[name] + more };
  });
}

/**
 * The number of answers until the end of each bin that settled no id. Outcomes are recorded a moment after their answers, so the number never exceeds
 * the number of any later bin.
 */
function retriedUntil(bins: Bins): number[] {
  let open = 0;
  const until = bins.map((bin) => {
    open += bin.requests - bin.refused - sentOutcomes.reduce((sum, outcome) => sum + bin[outcome], 0);
    return Math.max(0, open);
  });
  let least = Number.POSITIVE_INFINITY;
  return until
    .toReversed()
    .map((n) => {
      least = Math.min(least, n);
      return least;
    })
    .reverse();
}

type Place = { to: number; widthMs: number; isOpen: boolean; retried: number };

function pointOf(bin: Bins[number], { to, widthMs, isOpen, retried }: Place): HistoryPoint {
  const from = 1_000 * bin.start;
  const activeMs = Math.min(widthMs, bin.workMs);
  return {
    from,
    to,
    isOpen,
    activeMs,
    requests: bin.requests,
    refused: bin.refused,
    retried,
    waitedMs: bin.workMs > 0 ? Math.min(1, bin.heldMs / bin.workMs) * activeMs : 0,
    achieved: isOpen || activeMs === 0 ? null : ratePerSecond(bin.requests - bin.refused, { from, to }),
    allowed: bin.limitedMs > 0 ? bin.allowed / bin.limitedMs : null,
    inFlight: isOpen || bin.busyMs === 0 ? null : bin.busyMs / widthMs,
    takeovers: bin.takeovers,
    counts: Object.fromEntries(pointOutcomes.map((outcome) => [outcome, bin[outcome]])),
    latencyMs: percentiles(bin.latencies),
  };
}

function percentiles(buckets: readonly number[]): HistoryPoint['latencyMs'] {
  const all = buckets.reduce((sum, n) => sum + n, 0);
  return all === 0 ? null : { p50: percentile(buckets, 0.5 * all), p95: percentile(buckets, 0.95 * all) };
}

/** The latency of the n-th answer, which is between the bounds of its bucket. */
function percentile(buckets: readonly number[], nth: number): number {
  let left = nth;
  const found = buckets.findIndex((n) => {
    if (left <= n && n > 0) return true;
    left -= n;
    return false;
  });
  return latencyAt(bucketsOfOne * Math.max(0, found - 1 + left / buckets[found]!));
}
