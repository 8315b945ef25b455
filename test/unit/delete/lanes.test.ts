import { describe, expect, it } from 'vitest';
import { Demand } from '../../../src/delete/lanes.ts';

describe('demand', () => {
  const line = (weight: number, length = 0) => ({ weight, length });

  describe('room at the lanes', () => {
    it('is all for a line that is alone, whatever its weight', () => {
      expect(new Demand().share(line(1), 100, 0)).toBe(100);
    });

    it('is shared by their weights among those that want some', () => {
      const demand = new Demand();
      const [high, normal] = [line(16), line(4)];
      demand.share(high, 100, 0);
      expect(demand.share(normal, 100, 0)).toBe(20);
      expect(demand.share(high, 100, 0)).toBe(80);
    });

    it('counts what a line has in it, and what is being marked for it', () => {
      const demand = new Demand();
      const [one, other] = [line(4, 10), line(4)];
      demand.share(other, 100, 0);
      demand.expect(one, 15);
      expect(demand.share(one, 100, 0)).toBe(25);
      expect(demand.expected).toBe(15);
      demand.expect(one, -15);
      expect(demand.share(one, 100, 0)).toBe(40);
      expect(demand.expected).toBe(0);
    });

    it('goes to the others once a line wants none any more', () => {
      const demand = new Demand();
      const [quiet, busy] = [line(16), line(4)];
      demand.share(quiet, 100, 0);
      expect(demand.share(busy, 100, 250)).toBe(20);
      expect(demand.share(busy, 100, 251)).toBe(100);
    });

    it('never leaves a line without the last place', () => {
      const demand = new Demand();
      demand.share(line(16), 1, 0);
      expect(demand.share(line(1), 1, 0)).toBe(1);
    });
  });
});
