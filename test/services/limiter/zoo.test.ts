import { describe, expect, it } from 'vitest';
import { heldTo, scenarios } from '../../support/zoo/scenarios.ts';
import { missedBy, playSeeds } from '../../support/zoo/world.ts';

// What `control` makes of each target, in virtual time and with eight seeds: a row is held if seven of them hold it, as chance decides what the
// eighth meets. `node test/support/zoo/run.ts` prints the whole table.

describe.each([...new Set(scenarios.map(({ group }) => group))])('a target of the zoo: %s', (group) => {
  it.each(scenarios.filter((scenario) => scenario.group === group))('$name', (scenario) => {
    const wants = heldTo(scenario);
    const { used, refused, follow, latencyMs } = wants;
    const untilFollowed = follow !== undefined && (used ?? refused ?? latencyMs) === undefined;
    const results = playSeeds({ ...scenario, untilFollowed }, 8);
    expect(
      results.filter((result) => missedBy(result, wants) !== '').length,
      JSON.stringify(results),
    ).toBeLessThanOrEqual(1);
  });
});
