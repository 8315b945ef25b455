import { Queue } from 'bullmq';
import { describe, test } from 'vitest';
import { sharedQueueName } from '../../src/queue/queues.ts';
import { openQueueConnection } from '../../src/redis/connect.ts';
import { keys } from '../../src/redis/keys.ts';
import { findBroken } from '../support/checker.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { openOwnRedis } from '../support/own-redis.ts';
import { openProbes } from '../support/probes.ts';
import { until } from '../support/processes.ts';
import { testRedisAddress } from '../support/redis.ts';
import { lostIn, measureRedisAway } from '../support/redis-away.ts';
import { isFull, promised } from '../support/size.ts';

const ids = makeIds('r', 1_200);
const bystanders = makeIds('b', 20);
const objects = annotations([...ids, ...bystanders]);
const settings = { EXPUNGE_MAX_CONCURRENCY: '16' };

async function findTrouble(harness: Harness): Promise<string | null> {
  return findBroken({ ...harness, run: await harness.onlyRun(), resource: 'annotations', ids, bystanders });
}

describe.concurrent('a run in the middle', () => {
  /** @invariant rebuilt-queue: The queue, `open` and `deferred` can be rebuilt from the ledger. */
  test('ends as if nothing had happened when its queue is obliterated', async ({ expect, onTestFinished }) => {
    const harness = await openHarness(onTestFinished, { objects, latencyMs: 20 });
    await harness.worker([], settings);
    await harness.run([harness.list(ids), '--resource', 'annotations', '--yes', '--detach']);
    await until('the run is in the middle', () => harness.arrivals.length > 300);
    await obliterate(harness);
    const run = await harness.runIs('completed', ({ state }) => state === 'completed');
    expect(run.counts.deleted).toBe(ids.length);
    expect(await findTrouble(harness)).toBeNull();
  });

  test.for([
    ['run', 100],
    ['worker', 1_500],
  ] as const)(
    'goes on by itself when Redis was away (%s, %i ms)',
    async ([command, ms], { expect, onTestFinished }) => {
      const { run, resumedAfterMs, ...seen } = await measureRedisAway({ command, ms, atEnd: onTestFinished });
      expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false });
      expect(lostIn(run)).toBe(0);
      console.log(`away for ${ms} ms: goes on after ${Math.round(resumedAfterMs)} ms`);
      expect(resumedAfterMs).toBeLessThan(promised(5_000));
    },
  );
});

if (isFull)
  test.for([100, 5_000, 25_000, 120_000])(
    'a Redis that is away for %i ms costs nothing but the time',
    async (ms, { expect, onTestFinished }) => {
      const { run, resumedAfterMs, ...seen } = await measureRedisAway({
        command: 'workers',
        ms,
        atEnd: onTestFinished,
      });
      console.log(
        `Redis away for ${ms} ms: work goes on ${Math.round(resumedAfterMs)} ms after its return`,
        run.counts,
      );
      expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false });
      expect(lostIn(run)).toBe(0);
      expect(resumedAfterMs).toBeLessThan(5_000);
    },
  );

async function obliterate({ target }: Harness): Promise<void> {
  const connection = openQueueConnection(testRedisAddress()) as never;
  const queue = new Queue(sharedQueueName, { prefix: keys.queuePrefix(target.fp), connection });
  await queue.obliterate({ force: true });
  await queue.close();
}

test('a worker whose Redis hangs answers probes within 2 s', async ({ expect, onTestFinished }) => {
  const { url, pid } = await openOwnRedis(onTestFinished);
  const harness = await openHarness(onTestFinished);
  const probes = await openProbes(await harness.worker(['--http', '0'], { REDIS_URL: url }));
  await until('it is ready', async () => (await probes.readiness()).ready);
  process.kill(pid, 'SIGSTOP');
  await until('the last answers are forgotten', async () => (await probes.scrape()).value('expunge_redis_up') === 0);
  const answers = await Promise.all(['/healthz', '/metrics', '/readyz'].map(probes.get));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 503]);
  expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(promised(2_000));
});
