import { describe, test } from 'vitest';
import { walk } from '../support/action-walk.ts';
import { sized } from '../support/size.ts';

// ACTION_WALK_SEEDS=7,8 tries others.
const given = process.env.ACTION_WALK_SEEDS;
const seeds = given ? given.split(',').map(Number) : sized([1], [11, 12, 13, 14]);
const size = sized({ actions: 35, withinMs: 60_000, restMs: 100 }, { actions: 500, withinMs: 900_000, restMs: 150 });

describe('actions that five people take at random', () => {
  test.for(seeds)('hold, whatever is killed or comes back as it was before, with seed %i', async (seed, context) => {
    const { broken, words } = await walk({ seed, ...size, atEnd: context.onTestFinished });
    console.log(broken === null ? words : `${words}\n${broken}`);
    context.expect(broken, words).toBeNull();
  });
});
