import { Measures } from './measures.ts';
import { scenarios } from './scenarios.ts';
import { halfWay, type Scenario, seeded } from './world.ts';

// What a player would reach who knows the limit and sends evenly: `node test/support/zoo/ideal.ts [part of a name]`. Prints the share used at the
// highest of some rates of which at most 0.5 % are refused, and how high that rate is.

const [pattern = ''] = process.argv.slice(2);
const mostRefused = 0.005;

for (const scenario of scenarios.filter(({ group, name }) => `${group} ${name}`.includes(pattern))) {
  const shares = [1, 0.995, 0.99, 0.98, 0.97, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];
  const best = shares
    .map((share) => ({ share, ...play(scenario, share) }))
    .find(({ refused }) => refused <= mostRefused);
  const { used = 0, refused = 1, share = 0 } = best ?? {};
  console.log(
    `${scenario.group} ${scenario.name}: ${(100 * used).toFixed(1)} % / ${(100 * refused).toFixed(2)} % at ${share} of the limit`,
  );
}

function play(scenario: Scenario, share: number): { used: number; refused: number } {
  const random = seeded(scenario.seed ?? 1);
  const server = scenario.server(random);
  const measures = new Measures(scenario);
  const changes = [...(scenario.changes ?? [])];
  const arrivals: number[] = [];
  for (
    let now = 0;
    now < scenario.seconds * 1_000;
    now += 1_000 / (share * limitAt(scenario, server.perSecond(0), now))
  )
    arrivals.push(now + halfWay(scenario, now, random));
  arrivals.sort((a, b) => a - b);
  let bin = 0;
  for (const at of arrivals.filter((ms) => ms < scenario.seconds * 1_000)) {
    if (changes.length > 0 && at >= changes[0]![0] * 1_000) server.setLimit(changes.shift()![1], at);
    for (; bin * 100 <= at; bin++) measures.allow(bin * 100, server.perSecond(at), 0);
    measures.add(at, server.answer(at).status);
  }
  return measures.result();
}

function limitAt({ changes = [] }: Scenario, first: number, now: number): number {
  return changes.filter(([atS]) => now >= atS * 1_000).at(-1)?.[1] ?? first;
}
