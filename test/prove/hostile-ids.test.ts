import { it } from 'vitest';
import { hostileWays, sendHostileIds } from '../support/hostile-ids.ts';

const seeds = [11, 12, 13, 14, 15, 16]; // 120,000 ids
const ways = seeds.flatMap((seed) => hostileWays.map((way) => ({ ...way, seed })));

it.each(ways)(
  'of 5,000 hostile ids of $kinds resources in $format (seed $seed), with "$allowed" allowed, only accepted ones are requested, at their own path',
  async ({ seed, ...way }) => {
    await sendHostileIds(5_000, seed, way);
  },
);
