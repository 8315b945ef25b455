import { describe, test } from 'vitest';
import { walk } from '../support/action-walk.ts';
import { sized } from '../support/size.ts';

// ORDER_WALK_SEEDS=7,8 tries others.
const given = process.env.ORDER_WALK_SEEDS;
const seeds = given ? given.split(',').map(Number) : sized([1], [11, 12, 13, 14]);
const size = sized({ orders: 80, withinMs: 60_000, restMs: 150 }, { orders: 500, withinMs: 900_000, restMs: 150 });

describe('orders that five people give at random', () => {
  test.for(seeds)('hold, whatever is killed or comes back as it was before, with seed %i', async (seed, context) => {
    const { broken, words } = await walk({ seed, ...size, atEnd: context.onTestFinished });
    console.log(broken === null ? words : `${words}\n${broken}`);
    context.expect(broken, words).toBeNull();
  });
});
