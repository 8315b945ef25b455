import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { replyNumbers, replyTexts } from '../../../src/limiter/script-fields.ts';
import type { TargetReply } from '../../../src/limiter/target-call.ts';
import { TargetLimiter } from '../../../src/limiter/target-limiter.ts';

/** A limiter that got one permit for this moment from a Redis of the test's own, and passes its time there. */
async function openLimiter({ isPaced }: { isPaced: boolean }) {
  vi.useFakeTimers({ now: 1_000 });
  const nothing = [...replyNumbers.map((name) => [name, 0]), ...replyTexts.map((name) => [name, ''])];
  const leases = [{ first: 1_000, gap: 1, count: 1 }];
  const call = async () => ({ ...Object.fromEntries(nothing), now: Date.now(), ...leases.pop() }) as TargetReply;
  const limiter = new TargetLimiter({
    calls: { call, store: async () => false },
    ...{ process: 'p', rate: '', burst: null, slots: 1, clock: () => Date.now() },
    ...{ isBusy: () => false, stopHere: () => null, onChange: () => {} },
  });
  limiter.start({ takeStarved: () => false, isPaced });
  onTestFinished(() => {
    vi.useRealTimers();
    return limiter.stop();
  });
  limiter.enter();
  await vi.advanceTimersByTimeAsync(0);
  return limiter;
}

describe('the permits of a target', () => {
  test.for([
    [false, 40],
    [true, 200],
  ] as const)('beside rates of runs: %s: may be used for %i ms', async ([isPaced, ms]) => {
    const limiter = await openLimiter({ isPaced });
    await vi.advanceTimersByTimeAsync(ms);
    expect(limiter.permits.isDue(Date.now())).toBe(true);
    await vi.advanceTimersByTimeAsync(1);
    expect(limiter.permits.isDue(Date.now())).toBe(false);
  });
});
