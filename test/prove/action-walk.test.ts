import { describe, test } from 'vitest';
import { walk } from '../support/action-walk.ts';
import type { Careless } from '../support/action-walk-scene.ts';

const seedsMax = 6;
const size = { actions: 200, withinMs: 300_000, restMs: 100 };
const controls: readonly [Careless, RegExp][] = [
  ['comparison', /^an action did what it may not do/],
  ['rewriting', /^(an action was lost|what was forbidden was sent)/],
  ['single-write', /^(a run does not have the rules|more ids were sent)/],
];

describe('actions that five people take at random', () => {
  test.for(controls)('would not hold without the %s', async ([without, problem], context) => {
    let found: string | null = null;
    for (let seed = 1; seed <= seedsMax && found === null; seed++) {
      const { broken, words } = await walk({ seed, ...size, without, atEnd: context.onTestFinished });
      console.log(`without the ${without}: ${words}\n${broken?.split('\n', 1) ?? 'nothing was found'}`);
      found = broken;
    }
    context.expect(found).toMatch(problem);
  });
});
