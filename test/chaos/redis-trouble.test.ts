import { Queue } from 'bullmq';
import { describe, test } from 'vitest';
import { sharedQueueName } from '../../src/queue/queue.ts';
import { openQueueConnection } from '../../src/redis/connect.ts';
import { keys } from '../../src/redis/keys.ts';
import { findBroken } from '../support/checker.ts';
import { until } from '../support/processes.ts';
import { testRedisAddress } from '../support/redis.ts';
import { lostIn, seeRedisAway } from '../support/redis-away.ts';
import { annotations, makeIds, openScene, type Scene } from '../support/scene.ts';

const ids = makeIds('r', 3_000);
const bystanders = makeIds('b', 20);
const objects = annotations([...ids, ...bystanders]);
const settings = { EXPUNGE_MAX_CONCURRENCY: '16' };

async function findTrouble(scene: Scene): Promise<string | null> {
  return findBroken({ ...scene, run: await scene.run(), resource: 'annotations', ids, bystanders });
}

describe.concurrent('a run in the middle', () => {
  test('ends as if nothing had happened when its queue is obliterated', async ({ expect, onTestFinished }) => {
    const scene = await openScene(onTestFinished, { objects, latencyMs: 20 });
    await scene.worker([], settings);
    await scene.expunge(['run', scene.list(ids), '--resource', 'annotations', '--yes', '--detach']).ended;
    await until('the run is in the middle', () => scene.arrivals.length > 500);
    await obliterate(scene);
    const run = await scene.runIs('completed', ({ state }) => state === 'completed', 60_000);
    expect(run.counts.deleted).toBe(ids.length);
    expect(await findTrouble(scene)).toBeNull();
  });

  test.for([
    ['run', 100],
    ['worker', 3_000],
  ] as const)('goes on by itself when Redis was away (%s, %i ms)', async ([verb, ms], { expect, onTestFinished }) => {
    const { run, resumedAfterMs, ...seen } = await seeRedisAway({ verb, ms, atEnd: onTestFinished });
    expect(seen).toEqual({ sentWithout: 0, broken: null, hasRestarted: false });
    expect(lostIn(run)).toBe(0);
    expect(resumedAfterMs).toBeLessThan(5_000);
  });
});

async function obliterate({ target }: Scene): Promise<void> {
  const connection = openQueueConnection(testRedisAddress()) as never;
  const queue = new Queue(sharedQueueName, { prefix: keys.queuePrefix(target.fp), connection });
  await queue.obliterate({ force: true });
  await queue.close();
}
