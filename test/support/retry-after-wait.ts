import type { RetryAfterForm } from '../../src/sandbox/fault-kinds.ts';
import { openFleet } from './fleet.ts';
import type { AtEnd } from './harness.ts';
import { until } from './processes.ts';

export type RetryAfterWait = {
  workers: number;
  seconds: number;
  form: RetryAfterForm;
  /** How wrong the clock of the server is. */
  clockOffMs?: number;
  /** For so long after the first one, every request gets the same 429. */
  alsoForMs?: number;
  atEnd: AtEnd;
};

/** Counted from when the server said so: when the last request before the wait came, and the first one after it. */
export type WaitResult = { lastBeforeMs: number; firstAfterMs: number; refused: number; words: string };

const perSecond = 200;

/** In the middle of a run one request is answered 429 with a Retry-After: how the whole fleet waits. */
export async function measureWait(told: RetryAfterWait): Promise<WaitResult> {
  const { workers, seconds, form, clockOffMs = 0, alsoForMs = 0, atEnd } = told;
  let requests = 0;
  let toldAt = 0;
  const script = () => {
    if (++requests === 2 * perSecond) toldAt = performance.now();
    const refuses = requests === 2 * perSecond || (toldAt > 0 && performance.now() < toldAt + alsoForMs);
    return refuses ? (`status-429-${form}` as const) : null;
  };
  const { harness } = await openFleet(atEnd, {
    ids: (4 + seconds) * perSecond,
    workers,
    limit: `${perSecond}/s`,
    sandbox: {
      latencyMs: 20,
      faults: { script, retryAfterSeconds: seconds },
      ...(clockOffMs === 0 ? {} : { now: () => Date.now() + clockOffMs }),
    },
  });
  const { arrivals, counts } = harness.sandbox;
  await until('the fleet goes on', () => toldAt > 0 && arrivals.atMs.at(-1)! > toldAt + 900 * seconds);
  const after = [toldAt, ...arrivals.atMs.filter((at) => at >= toldAt)];
  const gaps = after.slice(1).map((at, i) => ({ fromMs: after[i]!, toMs: at, ms: at - after[i]! }));
  const wait = gaps.reduce((longest, gap) => (gap.ms > longest.ms ? gap : longest));
  const [lastBeforeMs, firstAfterMs] = [wait.fromMs - toldAt, wait.toMs - toldAt];
  const refused = counts.byStatus.get(429)!;
  const figures = `last request ${lastBeforeMs.toFixed(0)} ms after the word, next after ${firstAfterMs.toFixed(0)} ms`;
  const clock = clockOffMs === 0 ? '' : `, clock off by ${clockOffMs / 1_000} s`;
  const words = `Retry-After ${seconds} (${form}${clock}), ${workers} processes, ${refused} × 429: ${figures}`;
  return { lastBeforeMs, firstAfterMs, refused, words };
}
