import { describe, type TestContext, test } from 'vitest';
import { describeStorm, killStorm, type Storm } from '../support/kill-storm.ts';
import { configuredResources, knowDuringTests } from '../support/resources.ts';
import { sized } from '../support/size.ts';

const seeds = sized([20_261_120], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
const [seed] = seeds as [number];
const size = sized({ ids: 1_500, kills: 2 }, { ids: 100_000, kills: 50 });
// A 204 of a built-in resource and of another, and a 200 with an API key.
const storms = [
  ...seeds.map((seed) => ({ seed, resource: 'annotations' })),
  ...sized(['reports'], ['dashboards', 'reports']).map((resource) => ({ seed, resource })),
];

knowDuringTests(configuredResources);

async function stormOf(storm: Omit<Storm, 'atEnd'>, { onTestFinished }: TestContext) {
  const result = await killStorm({ ...storm, atEnd: onTestFinished });
  console.log(describeStorm(result, storm.seed));
  return { ...result, words: describeStorm(result, storm.seed) };
}

describe('workers that are killed in the middle of chunks, and an API that fails in every way', () => {
  test.for(storms)('lose no id of $resource and say nothing false, with seed $seed', async (storm, context) => {
    const { broken, run, hits, words } = await stormOf({ ...size, ...storm }, context);
    context.expect({ broken, state: run.state }, words).toEqual({ broken: null, state: 'completed' });
    context.expect(hits, words).toBeGreaterThan(0); // else it shows nothing
  });

  /** @invariant mark-before-request */
  test('would call deleted objects absent if they ignored the marks', async (context) => {
    const { broken, run, words } = await stormOf({ ids: size.ids, kills: 1, seed, careless: true }, context);
    context.expect(broken, words).toMatch(/^"absent was never deleted by us" is broken/);
    context.expect(run.state).toBe('completed');
  });
});
