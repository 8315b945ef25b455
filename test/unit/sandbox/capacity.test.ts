import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CapacityLimiter } from '../../support/capacity.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const open = () => new CapacityLimiter({ atOnce: 3, serviceMs: 400 }, () => performance.now());

it('serves so many at once, each for its time, and lets the others wait in line', () => {
  const limiter = open();
  const served: number[] = [];
  for (let n = 0; n < 12; n++) limiter.enter(() => served.push(n));
  const after = (ms: number) => {
    vi.advanceTimersByTime(ms);
    return served.length;
  };
  expect([after(399), after(1), after(399), after(1), after(800)]).toEqual([0, 3, 3, 6, 12]);
  expect(served).toEqual(Array.from({ length: 12 }, (_, n) => n));
  expect(limiter.load).toEqual({ now: 0, max: 12, mean: (12 + 9 + 6 + 3) / 4 });
});

it('counts the requests it holds, over time, from the last reset', () => {
  const limiter = open();
  for (let n = 0; n < 6; n++) limiter.enter(() => {});
  vi.advanceTimersByTime(400);
  limiter.resetLoad();
  limiter.enter(() => {});
  vi.advanceTimersByTime(400);
  expect(limiter.load).toEqual({ now: 1, max: 4, mean: 4 });
});
