import { expect, onTestFinished, test } from 'vitest';
import { chooseRuns, isAnyRun } from '../../../src/ledger/list-runs.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { listRuns } from '../../support/list-runs.ts';
import { writeManyRuns } from '../../support/many-runs.ts';
import { openOwnRedis } from '../../support/own-redis.ts';
import { sized } from '../../support/size.ts';

/** How often somebody waits for Redis: commands that are under way together count once. */
function countRoundTrips(redis: RedisClient): { readonly trips: number } {
  const seen = { trips: 0 };
  let underWay = 0;
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = ((command: Parameters<typeof send>[0], ...others: []) => {
    if (underWay++ === 0) seen.trips++;
    const done = () => void underWay--;
    command.promise.then(done, done);
    return send(command, ...others);
  }) as typeof redis.sendCommand;
  return seen;
}

const count = sized(2_000, 10_000);

test(`${count} runs are listed in a few round trips, whatever is asked of them`, async () => {
  const redis = (await openOwnRedis(onTestFinished)).connect();
  await writeManyRuns(redis, count);
  const seen = countRoundTrips(redis);
  const took = async (what: string, atMost: number, work: () => Promise<unknown>) => {
    const before = seen.trips;
    await work();
    expect(seen.trips - before, what).toBeLessThanOrEqual(atMost);
  };
  await took('all of them', 15, async () => expect(await listRuns(redis)).toHaveLength(count));
  await took('the newest 50', 2, async () =>
    expect((await chooseRuns(redis, { sort: 'created', limit: 50 })).runs).toHaveLength(50),
  );
  await took('those with most failures', 15, () => chooseRuns(redis, { sort: 'failed', limit: 50 }));
  await took('whether one is running', 15, () => isAnyRun(redis, []));
});
