import { type Fleet, type FleetOptions, openFleet, passed } from './fleet.ts';
import type { AtEnd } from './harness.ts';
import { until } from './processes.ts';
import { bestStretch, busiest, perSecondIn } from './rate-measures.ts';
import { sized } from './size.ts';

export type KnownRate = {
  perSecond: number;
  /** Who has the rate: the workers, or the run, with workers or alone. */
  way: 'worker --rate' | 'run --detach --rate' | 'run --rate';
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

/** The most requests in a second. In short the machine is not ours alone: what was let go may be half a second on its way. */
export function inAnySecond(perSecond: number): number {
  return 1.05 * perSecond + defaultBurst(perSecond) + sized(perSecond / 2, 0);
}

/**
 * A rate held against what arrived. In short the machine is not ours alone: what was let go may be a second on its way, so the window
 * is longer, and still much too short for twice the rate.
 */
export function held(perSecond: number, atMs: readonly number[], ticks: readonly number[]): Held {
  const seconds = sized(3, 1);
  const onTheirWay = sized(perSecond, 0);
  const allowed = 1.05 * perSecond * seconds + defaultBurst(perSecond) + onTheirWay;
  return { busiest: busiest(atMs, ticks, 1_000 * seconds), allowed };
}

/** A run at a known rate as the server sees it over so many seconds, after three to get going. */
export async function measureKnownRate(known: KnownRate, seconds: number): Promise<KnownRateResult> {
  const fleet = await start(known, seconds + getGoingMs / 1_000);
  const span = { fromMs: fleet.startedMs + getGoingMs, toMs: fleet.startedMs + getGoingMs + 1_000 * seconds };
  await passed(span.toMs, 0);
  return figures(known, fleet, perSecondIn(fleet.harness.sandbox.arrivals, span));
}

const getGoingMs = 3_000;

/** The same until the rate is nearly all used for so many seconds: a machine that has much else to do takes its time. */
export async function waitForKnownRate(known: KnownRate, seconds: number): Promise<KnownRateResult> {
  const fleet = await start(known, patienceSeconds);
  const { arrivals } = fleet.harness.sandbox;
  const longRun = await until(
    `${known.perSecond}/s are used for ${seconds} s`,
    () => {
      const best = bestStretch(arrivals, seconds, { fromMs: fleet.startedMs, toMs: performance.now() });
      return best !== null && best >= sized(0.25, 0.97) * known.perSecond && best;
    },
    1_000 * patienceSeconds,
  );
  return figures(known, fleet, longRun);
}

const patienceSeconds = sized(120, 60);

function start({ perSecond, way, workers, atEnd }: KnownRate, seconds: number): Promise<Fleet> {
  const rate = ['--rate', `${perSecond}/s`];
  const ways: Record<KnownRate['way'], Pick<FleetOptions, 'workers' | 'workerArgs' | 'runArgs'>> = {
    'worker --rate': { workers, workerArgs: rate },
    'run --detach --rate': { workers, runArgs: rate },
    'run --rate': { workers: 0, runArgs: rate },
  };
  return openFleet(atEnd, { ids: Math.ceil(perSecond * (seconds + 2)), ...ways[way] });
}

function figures({ perSecond, way, workers }: KnownRate, { harness, ticks }: Fleet, rate: number): KnownRateResult {
  const window = held(perSecond, harness.sandbox.arrivals.atMs, ticks);
  const longRun = rate / perSecond;
  const words = `${way} ${perSecond}/s × ${workers}: busiest ${window.busiest} (allowed ${window.allowed}), long run ${longRun.toFixed(4)} R`;
  return { ...window, longRun, words };
}
