import { control, type TargetControl } from '../../../src/limiter/learning/control.ts';
import type { Sums } from '../../../src/limiter/learning/sums.ts';
import type { Result } from './measures.ts';
import { type Player, type Scenario, seeded, simulate } from './world.ts';

/**
 * What a player would reach who knows the limit: in the same simulator, with the same processes, connections, round trips and waits that the server
 * asks for. It sends evenly, or so many at once where that is what the target counts, and leaves to other tenants what they take. It sees a fall by the
 * first refusal after it, and then knows the new limit; a rise it knows at once. It pays for no search.
 * Best is the share of the limit that is used most at no more refusals than are wanted, beside those that come at any rate.
 */
export function playIdeally(scenario: Scenario): Result {
  const play = (share: number) => simulate(scenario, undefined, idealPlayer(scenario, share));
  const atAnyRate = play(minShare).refused;
  const results = shares.map(play);
  const most = atAnyRate + (scenario.want?.refused ?? 0.005);
  const clean = results.filter(({ refused }) => refused <= most);
  return (clean.length > 0 ? clean : results).reduce((best, one) => (isBetter(one, best) ? one : best));
}

const shares = [2, 1.25, 1.1, 1.05, 1, 0.995, 0.99, 0.97, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1];
const minShare = 0.1;

function isBetter(one: Result, other: Result): boolean {
  const [follow, otherFollow] = [one.follow ?? 0, other.follow ?? 0];
  return follow < otherFollow || (follow === otherFollow && one.used > other.used);
}

function idealPlayer(scenario: Scenario, share: number): Player {
  const { others = () => 0, places } = scenario;
  const limits: [number, number][] = [[0, scenario.server(seeded(1)).perSecond(0)], ...(scenario.changes ?? [])];
  let known = limits.shift()![1];
  return (before: TargetControl | null, sums: Sums) => {
    const next = limits[0];
    const isSeen =
      next !== undefined && sums.now >= next[0] * 1_000 && (next[1] > known || sums.refused + sums.trouble > 0);
    if (isSeen) known = limits.shift()![1];
    const state = before ?? control(null, sums);
    const perSecond = places ? maxPerSecond : share * (known - others(sums.now));
    const rate = { ...state.rate, rate: Math.min(maxPerSecond, Math.max(0.01, perSecond)), lookedAtMs: sums.now };
    const inFlight = { ...state.inFlight, limit: places ? Math.round(share * places) : sums.most };
    return { ...state, rate, inFlight, epoch: isSeen ? state.epoch + 1 : state.epoch };
  };
}

const maxPerSecond = 100_000;
