import { describe, expect, it } from 'vitest';
import { type Blame, blameLoad, firstBlame } from '../../../src/limiter/blame.ts';
import { firstRate } from '../../../src/limiter/learned-rate.ts';

const rate = { ...firstRate(0, null), rate: 500 };

/** Looks every 100 ms with so many answers of which a share is trouble; what was said last, and whether it was ever blamed on the load. */
function watch(blame: Blame, fromMs: number, seconds: number, troubleAt: (ms: number) => number) {
  let verdict = { blame, isRefusal: false, restored: null as typeof rate | null };
  let restored: typeof rate | null = null;
  const refusals: boolean[] = [];
  for (let ms = fromMs; ms < fromMs + 1_000 * seconds; ms += 100) {
    verdict = blameLoad(verdict.blame, { now: ms, answers: 50, trouble: troubleAt(ms) }, rate);
    restored ??= verdict.restored;
    refusals.push(verdict.isRefusal);
  }
  return { ...verdict, restored, refusals };
}

describe('trouble', () => {
  it('in a few answers of a hundred is noise', () => {
    expect(watch(firstBlame(0), 0, 60, (ms) => (ms % 1_000 === 0 ? 5 : 0)).refusals).not.toContain(true);
  });

  it('in many counts as refusal, and goes on to while it ends with the rate', () => {
    const seen = watch(firstBlame(0), 0, 20, (ms) => (ms < 2_000 ? 20 : 0));
    expect(seen.refusals.slice(0, 20)).toContain(true);
    expect(seen.refusals.slice(100)).not.toContain(true);
    expect(seen.restored).toBeNull();
  });

  it('that a lower rate does not end is not blamed on the load: the rate comes back, for a minute', () => {
    const seen = watch(firstBlame(0), 0, 30, () => 25);
    expect(seen.refusals.slice(0, 30)).toContain(true);
    expect(seen.restored).toEqual(rate);
    expect(seen.refusals.slice(80)).not.toContain(true);
    expect(watch(seen.blame, 30_000, 60, () => 25).refusals).toContain(true);
  });
});
