import { type Fleet, type FleetOptions, openFleet, passed } from './fleet.ts';
import type { AtEnd } from './harness.ts';
import { busiest, perSecondIn } from './rate-measures.ts';

export type KnownRate = {
  perSecond: number;
  /** What has the rate: the target, or the run, with workers or alone. */
  way: 'target limit' | 'run --detach --rate' | 'run --rate';
  workers: number;
  atEnd: AtEnd;
};

/** `longRun`: as a share of the rate. */
export type KnownRateResult = Held & { longRun: number; words: string };

/** The most requests in a window, and how many of them the rate allows. */
export type Held = { busiest: number; allowed: number };

/** The permits that a rate lets go at once where nothing else is said: what 50 ms bring. */
function defaultBurst(perSecond: number): number {
  return Math.max(1, perSecond / 20);
}

/** The most requests in a second. */
export function inAnySecond(perSecond: number): number {
  return 1.05 * perSecond + defaultBurst(perSecond);
}

/** A rate held against what arrived. */
export function held(perSecond: number, atMs: readonly number[], ticks: readonly number[]): Held {
  return { busiest: busiest(atMs, ticks), allowed: inAnySecond(perSecond) };
}

/** A run at a known rate as the server sees it over so many seconds, after three to get going. */
export async function measureKnownRate(known: KnownRate, seconds: number): Promise<KnownRateResult> {
  const fleet = await start(known, seconds + getGoingMs / 1_000);
  const span = { fromMs: fleet.startedMs + getGoingMs, toMs: fleet.startedMs + getGoingMs + 1_000 * seconds };
  await passed(span.toMs, 0);
  return figures(known, fleet, perSecondIn(fleet.harness.sandbox.arrivals, span));
}

const getGoingMs = 3_000;

function start({ perSecond, way, workers, atEnd }: KnownRate, seconds: number): Promise<Fleet> {
  const limit = `${perSecond}/s`;
  const runArgs = ['--rate', limit];
  const ways: Record<KnownRate['way'], Pick<FleetOptions, 'workers' | 'limit' | 'runArgs'>> = {
    'target limit': { workers, limit },
    'run --detach --rate': { workers, runArgs },
    'run --rate': { workers: 0, runArgs },
  };
  return openFleet(atEnd, { ids: Math.ceil(perSecond * (seconds + 2)), ...ways[way] });
}

function figures({ perSecond, way, workers }: KnownRate, { harness, ticks }: Fleet, rate: number): KnownRateResult {
  const window = held(perSecond, harness.sandbox.arrivals.atMs, ticks);
  const longRun = rate / perSecond;
  const words = `${way} ${perSecond}/s × ${workers}: busiest ${window.busiest} (allowed ${window.allowed}), long run ${longRun.toFixed(4)} R`;
  return { ...window, longRun, words };
}
