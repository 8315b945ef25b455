import { setTimeout as sleep } from 'node:timers/promises';
import type { RateLimit } from '../../src/sandbox/rate-limit.ts';
import { type Fleet, openFleet, passed } from './fleet.ts';
import type { AtEnd } from './harness.ts';
import { percent, secondsToFollow, sharesOf, takenIn } from './rate-measures.ts';

export type HiddenLimit = {
  perSecond: number;
  /** The header of a 429, null = none. */
  retryAfter: 'seconds' | 'imf-fixdate' | null;
  workers: number;
  atEnd: AtEnd;
  /** How many ids a run needs that lasts for so many seconds at so many times the limit. */
  seconds: number;
};

/** A bucket that nobody wrote down, with a burst of a tenth of a second. */
export function bucket({ perSecond, retryAfter }: Pick<HiddenLimit, 'perSecond' | 'retryAfter'>): RateLimit {
  return { perSecond, burst: Math.max(1, perSecond / 10), ...(retryAfter === null ? {} : { retryAfter }) };
}

/** A run of many ids against a bucket. */
export function openHiddenLimit(hidden: HiddenLimit): Promise<Fleet> {
  const { perSecond, workers, atEnd, seconds } = hidden;
  const ids = Math.ceil(perSecond * seconds);
  return openFleet(atEnd, { ids, workers, sandbox: { latencyMs: 10, faults: { rate: bucket(hidden) } } });
}

export type LimitResult = { used: number; refused: number; words: string };

/** Which part of the limit is used, and which part refused, over `seconds` after `warmUp` ones. */
export async function measureHiddenLimit(hidden: HiddenLimit, warmUp: number, seconds: number): Promise<LimitResult> {
  const { harness, startedMs } = await openHiddenLimit(hidden);
  const fromMs = startedMs + 1_000 * warmUp;
  const toMs = fromMs + 1_000 * seconds;
  await passed(toMs, 0);
  const { used, refused } = sharesOf(takenIn(harness.sandbox.arrivals, { fromMs, toMs }), hidden.perSecond);
  const { refused: before } = takenIn(harness.sandbox.arrivals, { fromMs: startedMs, toMs: fromMs });
  const found = secondsToFollow(harness.sandbox.arrivals, hidden.perSecond, { fromMs: startedMs, toMs });
  const figures = `used ${percent(used)}, 429 ${percent(refused)}; found after ${found} s, ${before} refused before`;
  return { used, refused, words: `${nameOf(hidden)}: ${figures}` };
}

export function nameOf({ perSecond, retryAfter, workers }: HiddenLimit): string {
  return `hidden ${perSecond}/s, Retry-After ${retryAfter ?? 'none'}, ${workers} process${workers > 1 ? 'es' : ''}`;
}

export type ChangeResult = { halved: number | null; doubled: number | null; words: string };

/** How many seconds a run needs to follow when the limit halves, and when it doubles again. */
export async function measureChanges(hidden: HiddenLimit, settle: number, watch: number): Promise<ChangeResult> {
  const { harness, startedMs } = await openHiddenLimit(hidden);
  const { sandbox } = harness;
  await passed(startedMs, 1_000 * settle);
  const change = async (perSecond: number) => {
    sandbox.setRate(bucket({ ...hidden, perSecond }));
    const fromMs = performance.now();
    await sleep(1_000 * watch);
    return secondsToFollow(sandbox.arrivals, perSecond, { fromMs, toMs: performance.now() });
  };
  const halved = await change(hidden.perSecond / 2);
  const doubled = await change(hidden.perSecond);
  return {
    halved,
    doubled,
    words: `${nameOf(hidden)}: halved, followed in ${halved} s; doubled, followed in ${doubled} s`,
  };
}
