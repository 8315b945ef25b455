import { describe, expect, it } from 'vitest';
import { ClockOffset } from '../../../src/limiter/clock-offset.ts';

describe('the distance between two clocks', () => {
  it('is known to half the time of a call', () => {
    const offset = new ClockOffset();
    offset.see(1_000, 1_002, 501);
    expect(offset.ms).toBe(500);
  });

  it('is not changed by a call that took long, whichever way was slow', () => {
    const offset = new ClockOffset();
    offset.see(1_000, 1_002, 501);
    offset.see(1_100, 1_300, 601);
    offset.see(1_400, 1_600, 1_099);
    expect(offset.ms).toBe(500);
  });

  it('follows clocks that drift apart, within a millisecond', () => {
    const offset = new ClockOffset();
    for (let at = 0; at < 100_000; at += 100) {
      const redis = at * 1.0002;
      const slowness = at % 700 === 0 ? 0.5 : 3;
      offset.see(at, at + 2 * slowness, redis + slowness);
      expect(Math.abs(offset.ms - (at - redis))).toBeLessThan(1);
    }
  });

  it('is new at once where the other clock was set', () => {
    const offset = new ClockOffset();
    offset.see(1_000, 1_002, 501);
    offset.see(1_100, 1_104, 90_000);
    expect(offset.ms).toBe(1_102 - 90_000);
  });
});
