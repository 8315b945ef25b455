import { CapacityLimiter } from './capacity.ts';
import { openFleet, passed } from './fleet.ts';
import type { AtEnd } from './harness.ts';

export type HiddenCapacity = {
  serviceMs: number;
  workers: number;
  atEnd: AtEnd;
};

export type CapacityResult = { mean: number; max: number; used: number; words: string };

const atOnce = 20;

/** How many requests are in the house of a server that serves 20 at once and lets all others wait in line. */
export async function measureCapacity(
  hidden: HiddenCapacity,
  warmUp: number,
  seconds: number,
): Promise<CapacityResult> {
  const { serviceMs, workers, atEnd } = hidden;
  const maxPerSecond = (atOnce * 1_000) / serviceMs;
  const limiter = new CapacityLimiter({ atOnce, serviceMs }, () => performance.now());
  const { harness, startedMs } = await openFleet(atEnd, {
    ids: Math.ceil(1.1 * maxPerSecond * (warmUp + seconds)),
    workers,
    sandbox: { admission: limiter },
  });
  const { sandbox } = harness;
  await passed(startedMs, 1_000 * warmUp);
  limiter.resetLoad();
  const before = sandbox.executed.size;
  await passed(startedMs, 1_000 * (warmUp + seconds));
  const { mean, max } = limiter.load;
  const used = (sandbox.executed.size - before) / (maxPerSecond * seconds);
  const figures = `${mean.toFixed(1)} in the house on average, ${max} at most, ${used.toFixed(2)} of the throughput`;
  return { mean, max, used, words: `${atOnce} at once, ${serviceMs} ms each, ${workers} workers: ${figures}` };
}
