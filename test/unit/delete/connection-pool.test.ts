import { describe, expect, it } from 'vitest';
import { FairShares } from '../../../src/delete/connection-pool.ts';

describe('demand', () => {
  const line = (weight: number, length = 0) => ({ weight, length });

  describe('room in the connection pool', () => {
    it('is all for a queue that is alone, whatever its weight', () => {
      expect(new FairShares().roomFor(line(1), 100, 0)).toBe(100);
    });

    it('is shared by their weights among those that want some', () => {
      const demand = new FairShares();
      const [high, normal] = [line(16), line(4)];
      demand.roomFor(high, 100, 0);
      expect(demand.roomFor(normal, 100, 0)).toBe(20);
      expect(demand.roomFor(high, 100, 0)).toBe(80);
    });

    it('counts what a queue holds, and what it has reserved', () => {
      const demand = new FairShares();
      const [one, other] = [line(4, 10), line(4)];
      demand.roomFor(other, 100, 0);
      demand.reserve(one, 15);
      expect(demand.roomFor(one, 100, 0)).toBe(25);
      expect(demand.reserved).toBe(15);
      demand.reserve(one, -15);
      expect(demand.roomFor(one, 100, 0)).toBe(40);
      expect(demand.reserved).toBe(0);
    });

    it('goes to the others once a queue wants none any more', () => {
      const demand = new FairShares();
      const [quiet, busy] = [line(16), line(4)];
      demand.roomFor(quiet, 100, 0);
      expect(demand.roomFor(busy, 100, 250)).toBe(20);
      expect(demand.roomFor(busy, 100, 251)).toBe(100);
    });

    it('never leaves a queue without the last place', () => {
      const demand = new FairShares();
      demand.roomFor(line(16), 1, 0);
      expect(demand.roomFor(line(1), 1, 0)).toBe(1);
    });
  });
});
