import { describe, expect, it } from 'vitest';
import { firstRate } from '../../../src/limiter/learned-rate.ts';
import { detectOverload, initialOverload, type OverloadState } from '../../../src/limiter/overload.ts';

const rate = { ...firstRate(0, null), rate: 500 };

/** Looks every 100 ms with so many answers of which a share is trouble; what was said last, and whether it was ever blamed on the load. */
function watch(overload: OverloadState, fromMs: number, seconds: number, troubleAt: (ms: number) => number) {
  let verdict = { overload, isRefusal: false, restored: null as typeof rate | null };
  let restored: typeof rate | null = null;
  const refusals: boolean[] = [];
  for (let ms = fromMs; ms < fromMs + 1_000 * seconds; ms += 100) {
    verdict = detectOverload(verdict.overload, { now: ms, answers: 50, trouble: troubleAt(ms) }, rate);
    restored ??= verdict.restored;
    refusals.push(verdict.isRefusal);
  }
  return { ...verdict, restored, refusals };
}

describe('a share of errors', () => {
  it('in a few answers of a hundred is noise', () => {
    expect(watch(initialOverload(0), 0, 60, (ms) => (ms % 1_000 === 0 ? 5 : 0)).refusals).not.toContain(true);
  });

  it('in many counts as refusals, as long as a lower rate ends it', () => {
    const seen = watch(initialOverload(0), 0, 20, (ms) => (ms < 2_000 ? 20 : 0));
    expect(seen.refusals.slice(0, 20)).toContain(true);
    expect(seen.refusals.slice(100)).not.toContain(true);
    expect(seen.restored).toBeNull();
  });

  it('that a lower rate does not end rules overload out for a minute: the rate comes back', () => {
    const seen = watch(initialOverload(0), 0, 30, () => 25);
    expect(seen.refusals.slice(0, 30)).toContain(true);
    expect(seen.restored).toEqual(rate);
    expect(seen.refusals.slice(80)).not.toContain(true);
    expect(watch(seen.overload, 30_000, 60, () => 25).refusals).toContain(true);
  });
});
