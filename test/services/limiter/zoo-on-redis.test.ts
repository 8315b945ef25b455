import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RedisClient } from '../../../src/redis/client.ts';
import { percent } from '../../support/rate-measures.ts';
import { openTestRedis } from '../../support/redis.ts';
import { isFull, sized } from '../../support/size.ts';
import type { Result } from '../../support/zoo/measures.ts';
import { playOnRedis } from '../../support/zoo/on-redis.ts';
import { heldTo, scenarios } from '../../support/zoo/scenarios.ts';
import type { Scenario } from '../../support/zoo/world.ts';

// A part of the zoo, with the limiter as it is shipped and its scripts on a real Redis, in virtual time. What `control` makes of every row is in
// `zoo.test.ts`; the rows here show that the processes, their calls and the scripts carry that out.

const inShort = [
  'bucket 300/s, burst 5 %',
  'window 300 per 1 s',
  '503 503 instead of 429, 300 per 1 s',
  'change RA seconds 1000/s × 0.1',
  'headers 300 per 1 s, draft-8 + Retry-After',
  'headers that lie remaining-stuck, bucket 300/s',
  'outage 1000/s, down 30 s (503)',
  'first contact 300/s without a burst, 4 processes',
];
const inFull = [
  'bucket 300/s, burst 1 s',
  'limits 5/s, burst 1 s',
  'limits 1000/s, burst 1 s',
  'window 3000 per 10 s',
  'concurrency queues above 20 at once, 100 ms',
  '503 500 for 10 %, whatever the rate, of 1000/s, 1 ms',
  'random 1 % random 429, limit 1000/s',
  'change 1000/s × 0.1',
  'change 1000/s × 0.005',
  'change 100/s × 10',
  'Retry-After 300/s, burst 5 %, 1 seconds',
  'headers 3000 per 10 s, draft-8 + Retry-After',
  'latency 200 ms ± 50 %, 300/s',
  'outage 1000/s, down 30 s (refused)',
];
const names = [...inShort, ...sized([], inFull)];
const part = scenarios.filter(({ group, name }) => names.includes(`${group} ${name}`));

let redis: RedisClient;
beforeAll(async () => {
  redis = await openTestRedis();
});
afterAll(() => redis.disconnect());

it('has all rows that are named here', () => {
  expect(part.map(({ group, name }) => `${group} ${name}`)).toEqual(expect.arrayContaining(names));
});

/** What follows a change is played five times, and the middle one counts: in three of eight one look more is needed, which takes a minute at 5/s. */
async function play(scenario: Scenario): Promise<Result> {
  const seeds = scenario.want?.follow === undefined || !isFull ? [1] : [1, 2, 3, 4, 5];
  const results: Result[] = [];
  for (const seed of seeds) results.push(await playOnRedis(redis, { ...scenario, seed }));
  return results.toSorted((a, b) => (a.follow ?? 0) - (b.follow ?? 0))[seeds.length >> 1]!;
}

describe('the shipped limiter at a target of the zoo', () => {
  it.each(part)('$group: $name', async (scenario) => {
    const { used = 0, refused = 1, follow = Number.POSITIVE_INFINITY } = heldTo(scenario);
    const seen = await play(scenario);
    const followed = seen.follow === null ? '' : `, followed in ${seen.follow.toFixed(1)} s`;
    console.log(
      `${scenario.group} ${scenario.name}: used ${percent(seen.used)}, refused ${percent(seen.refused)}${followed}`,
    );
    expect(seen.used).toBeGreaterThanOrEqual(used);
    expect(seen.refused).toBeLessThanOrEqual(refused);
    expect(seen.follow ?? 0).toBeLessThanOrEqual(sized(2, 1) * follow); // by chance one look more is needed
  });
});
