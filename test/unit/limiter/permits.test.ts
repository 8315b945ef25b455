import { describe, expect, it } from 'vitest';
import { Permits } from '../../../src/limiter/permits.ts';

describe('permits', () => {
  it('are used from their slots on, one each', () => {
    const permits = new Permits();
    permits.add({ firstMs: 100, gapMs: 10, count: 3 }, 0);
    const taken = [99, 100, 105, 110, 125, 126].map((now) => permits.take(now));
    expect(taken).toEqual([false, true, false, true, true, false]);
  });

  it('go on with the next lease where one ends', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 10, count: 2 }, 0);
    permits.add({ firstMs: 20, gapMs: 20, count: 2 }, 0);
    expect([0, 10, 20, 40].map((now) => permits.take(now))).toEqual([true, true, true, true]);
    expect(permits.nextMs(41)).toBe(Number.POSITIVE_INFINITY);
  });

  it('that are more than 40 ms late are lost to who stood still, and given back', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 10, count: 100 }, 0);
    let taken = 0;
    while (permits.take(500)) taken++;
    expect(taken).toBe(5); // those of 460 to 500
    expect(permits.takeUnused()).toBe(46);
    expect(permits.takeUnused()).toBe(0);
  });

  it('of slots that had passed when they came may be used at once, but not for long', () => {
    const usableAt = (nowMs: number) => {
      const permits = new Permits();
      permits.add({ firstMs: 900, gapMs: 10, count: 11 }, 1_000);
      let taken = 0;
      while (permits.take(nowMs)) taken++;
      return taken;
    };
    expect([1_000, 1_040, 1_045].map(usableAt)).toEqual([11, 11, 0]);
  });

  it('of a probe may wait longer', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 1, count: 1 }, 0, 1_000);
    expect(permits.take(999)).toBe(true);
  });

  it('are given back when they are dropped or not needed', () => {
    const permits = new Permits();
    permits.add({ firstMs: 0, gapMs: 10, count: 5 }, 0);
    permits.take(0);
    permits.drop();
    expect(permits.take(10)).toBe(false);
    expect(permits.takeUnused()).toBe(4);
  });

  it('say how many are in hand and when the next is due', () => {
    const permits = new Permits();
    permits.add({ firstMs: 100, gapMs: 10, count: 5 }, 0);
    expect([permits.inHand(0), permits.nextMs(0), permits.isDue(99), permits.isDue(100)]).toEqual([
      5,
      100,
      false,
      true,
    ]);
    expect(permits.inHand(155)).toBe(3);
  });
});
