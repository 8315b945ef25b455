import { count, duration, rate } from '../format.ts';
import type { Measures } from '../ledger/measures.ts';

/** How fast a run was and what held it back. Rates are requests a second; null = nobody measured it. */
export type PaceSummary = {
  achieved: number | null; // that were not refused, over the deleting time
  allowed: number | null; // by the learned limit and --rate, on average while there was one
  waitedMs: number; // part of the deleting time in which nothing might leave
  refused: number; // answers 429
  refreshes: number; // of the token
  latencyMs: Measures['latencyMs'];
};

/** `activeMs`: the deleting time. Processes measure side by side, so shares of their time count, not sums. */
export function paceSummary(measures: Measures, activeMs: number): PaceSummary {
  const { requests, refused, refreshes, workMs, heldMs, allowed, limitedMs, latencyMs } = measures;
  return {
    achieved: activeMs > 0 && requests > 0 ? ((requests - refused) / activeMs) * 1_000 : null,
    allowed: limitedMs > 0 ? (allowed / limitedMs) * 1_000 : null,
    waitedMs: workMs > 0 ? (Math.min(heldMs, workMs) / workMs) * activeMs : 0,
    refused,
    refreshes,
    latencyMs,
  };
}

const leastWaitMs = 500;

/** The same in two lines, with only what there is to say; none where nothing was sent. */
export function paceLines({ achieved, allowed, waitedMs, refused, refreshes, latencyMs }: PaceSummary): string[] {
  if (achieved === null) return [];
  const pace = [
    `${rate(achieved)}${allowed === null ? '' : ` of ${rate(allowed)} allowed`}`,
    waitedMs < leastWaitMs ? '' : `waited ${duration(waitedMs)}`,
    refused === 0 ? '' : `${count(refused)} × 429`,
    refreshes === 0 ? '' : `token refreshed ${count(refreshes)} ×`,
  ].filter(Boolean);
  const latency = latencyMs && `Latency: p50 ${ms(latencyMs.p50)}, p95 ${ms(latencyMs.p95)}, p99 ${ms(latencyMs.p99)}`;
  return [`Pace: ${pace.join(' · ')}`, ...(latency === null ? [] : [latency])];
}

/** The same for `--json`. */
export function paceFacts({ achieved, allowed, waitedMs, refused, refreshes, latencyMs }: PaceSummary) {
  return {
    rate_achieved: achieved && tenths(achieved),
    rate_allowed: allowed && tenths(allowed),
    waited_seconds: Math.round(waitedMs) / 1_000,
    refused_429: refused,
    token_refreshes: refreshes,
    latency_ms: latencyMs && { p50: tenths(latencyMs.p50), p95: tenths(latencyMs.p95), p99: tenths(latencyMs.p99) },
  };
}

function ms(latency: number): string {
  if (latency >= 9_950) return duration(latency);
  return `${latency < 10 ? tenths(latency) : count(Math.round(latency))} ms`;
}

function tenths(n: number): number {
  return Math.round(n * 10) / 10;
}
