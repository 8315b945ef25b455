import { describe, expect, it } from 'vitest';
import { heldTo, scenarios } from '../../support/zoo/scenarios.ts';
import { simulate } from '../../support/zoo/world.ts';

// What `control` makes of each target, in virtual time. `node test/support/zoo/run.ts` prints the whole table.

describe.each([...new Set(scenarios.map(({ group }) => group))])('a target of the zoo: %s', (group) => {
  it.each(scenarios.filter((scenario) => scenario.group === group))('$name', (scenario) => {
    const { used, refused, follow } = heldTo(scenario);
    const untilFollowed = follow !== undefined && used === undefined && refused === undefined;
    const seen = simulate({ ...scenario, untilFollowed });
    if (used !== undefined) expect(seen.used).toBeGreaterThanOrEqual(used);
    if (refused !== undefined) expect(seen.refused).toBeLessThanOrEqual(refused);
    if (follow !== undefined) expect(seen.follow).toBeLessThanOrEqual(follow);
  });
});
