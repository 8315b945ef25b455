import { describe, expect, it } from 'vitest';
import { heldTo, scenarios } from '../../support/zoo/scenarios.ts';
import { simulate } from '../../support/zoo/world.ts';

// What `control` makes of each target, in virtual time. `node test/support/zoo/run.ts` prints the whole table.

describe.each([...new Set(scenarios.map(({ group }) => group))])('a target of the zoo: %s', (group) => {
  it.each(scenarios.filter((scenario) => scenario.group === group))('$name', (scenario) => {
    const { used = 0, refused = 1, follow = Number.POSITIVE_INFINITY } = heldTo(scenario);
    const seen = simulate(scenario);
    expect(seen.used).toBeGreaterThanOrEqual(used);
    expect(seen.refused).toBeLessThanOrEqual(refused);
    expect(seen.follow ?? 0).toBeLessThanOrEqual(follow);
  });
});
