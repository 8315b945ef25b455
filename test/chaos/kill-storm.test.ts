import { describe, type TestContext, test } from 'vitest';
import { describeStorm, killStorm, type Sofar } from '../support/kill-storm.ts';
import { configuredResources, knowDuringTests } from '../support/resources.ts';
import { sized } from '../support/size.ts';

const seeds = sized([20_261_120], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
const [firstSeed] = seeds as [number];
const everySeed = seeds.map((seed) => ({ seed, resource: 'annotations' }));
const ofConfigured = ['dashboards', 'reports'].map((resource) => ({ seed: firstSeed, resource })); // a 204; a 200, and an API key
const storms = sized({ ids: 4_000, kills: 2 }, { ids: 100_000, kills: 50 });

/** One kill a second, however little was settled since. */
const killEachSecond = ({ sinceMs }: Sofar) => sinceMs >= 1_000;

/** Kills as long as chunks go on; those of the dead take 10 to 14 s until they do, so there are two waves of them. */
const killNow = ({ kills, elapsedMs, settledSince }: Sofar) => kills < 5 && elapsedMs < 16_000 && settledSince >= 200;
const killSoon = ({ kills, elapsedMs, settledSince }: Sofar) => kills < 4 && elapsedMs < 10_000 && settledSince >= 200;

knowDuringTests(configuredResources);

/** Kills workers until the run has ended, and checks it against what the sandbox saw. */
async function holdStorm({ seed, resource }: { seed: number; resource: string }, context: TestContext) {
  const { expect, onTestFinished } = context;
  const storm = { ids: storms.ids, seed, resource, killNow: sized(killNow, killEachSecond), latencyMs: 20 };
  const result = await killStorm({ ...storm, atEnd: onTestFinished });
  console.log(describeStorm(result, seed));
  expect(result.broken, describeStorm(result, seed)).toBeNull();
  expect(result.run.state).toBe('completed');
  expect(result.kills).toBeGreaterThanOrEqual(storms.kills);
}

describe.concurrent('workers that are killed in the middle of chunks, and an API that fails in every way', () => {
  test.for(everySeed)('lose no id of $resource and say nothing false, with seed $seed', holdStorm);

  /** @invariant mark-before-request */
  test('would call deleted objects absent if they ignored the marks', async ({ expect, onTestFinished }) => {
    // A kill that meets a worker between two chunks shows nothing: then the next storm has to.
    const found: (string | null)[] = [];
    for (let n = 0; n < 4 && !found.some(Boolean); n++) {
      const size = sized({ ids: 6_000, killNow: killSoon }, { ids: 20_000, killNow: killEachSecond });
      const storm = { ...size, seed: firstSeed + n, latencyMs: 20, careless: true };
      found.push((await killStorm({ ...storm, atEnd: onTestFinished })).broken);
    }
    expect(found.at(-1)).toMatch(/^"absent was never deleted by us" is broken/);
  });
});

// After the others: the workers of four storms at once would leave each too little of a small machine.
describe('workers that are killed in the middle of chunks of a configured resource', () => {
  test.concurrent.for(ofConfigured)('lose no id of $resource and say nothing false, with seed $seed', holdStorm);
});
