import { describe, expect, it } from 'vitest';
import { ClockOffset, Permits } from '../../../src/limiter/permits.ts';

describe('permits', () => {
  it('are used from their time on, one each', () => {
    const permits = new Permits();
    permits.add({ firstMs: 100, gapMs: 10, count: 3, leasedAt: 0 }, 0);
    const taken = [99, 100, 105, 110, 125, 126].map((now) => permits.take(now));
    expect(taken).toEqual([false, true, false, true, true, false]);
  });

  it('go on with the next lease where one ends', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 10, count: 2, leasedAt: 0 }, 0);
    permits.add({ firstMs: 20, gapMs: 20, count: 2, leasedAt: 0 }, 0);
    expect([0, 10, 20, 40].map((now) => permits.take(now))).toEqual([true, true, true, true]);
    expect(permits.nextMs(41)).toBe(Number.POSITIVE_INFINITY);
  });

  it('that are more than 40 ms late are lost to who stood still, and given back', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 10, count: 100, leasedAt: 0 }, 0);
    let taken = 0;
    while (permits.take(500)) taken++;
    expect(taken).toBe(5); // those of 460 to 500
    expect(permits.takeUnused().unused).toBe(46);
    expect(permits.takeUnused().unused).toBe(0);
  });

  it('are apart from one another at a target that refuses those which come close, and only there', () => {
    const takenLate = (wasRefused: (isClose: boolean) => boolean) => {
      const permits = new Permits();
      for (let answer = 0; answer < 100; answer++)
        permits.recordAnswer(answer % 10 === 0, wasRefused(answer % 10 === 0));
      permits.add({ firstMs: 0, gapMs: 10, count: 10, leasedAt: 0 }, 0);
      permits.take(0);
      return [30, 31, 39, 39.5, 49].filter((now) => permits.take(now));
    };
    expect(takenLate((isClose) => isClose)).toEqual([30, 39.5, 49]);
    expect(takenLate(() => false)).toEqual([30, 31, 39, 39.5, 49].slice(0, 3).concat(49));
    expect(takenLate(() => true)).toEqual(takenLate(() => false));
  });

  it('say of the last one taken whether it came close after the one before', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 10, count: 5, leasedAt: 0 }, 0);
    const close = [0, 10, 35, 36].map((now) => permits.take(now) && permits.wasClose);
    expect(close).toEqual([false, false, false, true]);
  });

  it('that had passed when they came may be used at once, but not for long', () => {
    const usableAt = (nowMs: number) => {
      const permits = new Permits();
      permits.add({ firstMs: 900, gapMs: 10, count: 11, leasedAt: 0 }, 1_000);
      let taken = 0;
      while (permits.take(nowMs)) taken++;
      return taken;
    };
    expect([1_000, 1_040, 1_045].map(usableAt)).toEqual([11, 11, 0]);
  });

  it('of a probe may wait longer', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 1, count: 1, leasedAt: 0 }, 0, 1_000);
    expect(permits.take(999)).toBe(true);
  });

  it('are given back when they are dropped or not needed', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 10, count: 5, leasedAt: 0 }, 0);
    permits.take(0);
    permits.drop();
    expect(permits.take(10)).toBe(false);
    expect(permits.takeUnused().unused).toBe(4);
  });

  it('continue from the end of the last lease, unless they were dropped', () => {
    const permits = new Permits();
    expect(permits.till).toBe('0');
    permits.add({ firstMs: 0, gapMs: 10, count: 5, leasedAt: 0, till: '50' }, 0);
    permits.add({ firstMs: 50, gapMs: 10, count: 0, leasedAt: 0, till: '60' }, 0);
    expect(permits.till).toBe('50');
    permits.drop();
    expect(permits.till).toBe('0');
  });

  it('are given back with the time when the first of them was leased', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 10, count: 1, leasedAt: 100 }, 0);
    permits.add({ firstMs: 10, gapMs: 10, count: 2, leasedAt: 200 }, 0);
    permits.add({ firstMs: 30, gapMs: 10, count: 3, leasedAt: 300 }, 0);
    expect(permits.take(0)).toBe(true);
    permits.drop();
    expect(permits.takeUnused()).toEqual({ unused: 5, unusedSince: 200 });
    permits.add({ firstMs: 60, gapMs: 10, count: 1, leasedAt: 400 }, 0);
    permits.drop();
    expect(permits.takeUnused()).toEqual({ unused: 1, unusedSince: 400 });
  });

  it('say how many are in hand and when the next is due', () => {
    const permits = new Permits();
    permits.add({ firstMs: 100, gapMs: 10, count: 5, leasedAt: 0 }, 0);
    expect([permits.inHand(0), permits.nextMs(0), permits.isDue(99), permits.isDue(100)]).toEqual([
      5,
      100,
      false,
      true,
    ]);
    expect(permits.inHand(155)).toBe(3);
  });
});

describe('clock offset', () => {
  describe('the distance between two clocks', () => {
    it('is known to half the time of a call', () => {
      const offset = new ClockOffset();
      offset.observe(1_000, 1_002, 501);
      expect(offset.ms).toBe(500);
    });

    it('is not changed by a call that took long, whichever way was slow', () => {
      const offset = new ClockOffset();
      offset.observe(1_000, 1_002, 501);
      offset.observe(1_100, 1_300, 601);
      offset.observe(1_400, 1_600, 1_099);
      expect(offset.ms).toBe(500);
    });

    it('follows clocks that drift apart, within a millisecond', () => {
      const offset = new ClockOffset();
      for (let at = 0; at < 100_000; at += 100) {
        const redis = at * 1.0002;
        const slowness = at % 700 === 0 ? 0.5 : 3;
        offset.observe(at, at + 2 * slowness, redis + slowness);
        expect(Math.abs(offset.ms - (at - redis))).toBeLessThan(1);
      }
    });

    it('is new at once where the other clock was set', () => {
      const offset = new ClockOffset();
      offset.observe(1_000, 1_002, 501);
      offset.observe(1_100, 1_104, 90_000);
      expect(offset.ms).toBe(1_102 - 90_000);
    });
  });
});
