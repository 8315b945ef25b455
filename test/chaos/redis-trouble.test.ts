import { Queue } from 'bullmq';
import { describe, test } from 'vitest';
import { sharedQueueName } from '../../src/queue/queue.ts';
import { queueConnectionOptions } from '../../src/redis/connect.ts';
import { keys } from '../../src/redis/keys.ts';
import { findBroken } from '../support/checker.ts';
import { never, until } from '../support/processes.ts';
import { testRedisAddress } from '../support/redis.ts';
import { openRedisProxy } from '../support/redis-proxy.ts';
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

  test.for(['run', 'worker'] as const)(
    'goes on by itself when Redis was away for three seconds (%s)',
    async (verb, { expect, onTestFinished }) => {
      const scene = await openScene(onTestFinished, { objects, latencyMs: 20 });
      const proxy = await openRedisProxy();
      onTestFinished(() => proxy.close());
      const env = { ...settings, REDIS_URL: proxy.url };
      const args = ['run', scene.list(ids), '--resource', 'annotations', '--yes'];
      const running = verb === 'run' ? scene.expunge(args, env) : await scene.worker([], env);
      if (verb === 'worker') await scene.expunge([...args, '--detach']).ended;
      await until('the run is in the middle', () => scene.arrivals.length > 500);
      proxy.cut();
      const cutAt = performance.now();
      await never('requests without Redis', () => scene.arrivals.at(-1)! - cutAt > 1_000, 3_000);
      proxy.restore();
      const run = await scene.runIs('completed', ({ state }) => state === 'completed', 60_000);
      expect(run.counts.deleted + run.counts.gone_unconfirmed).toBe(ids.length);
      expect(await findTrouble(scene)).toBeNull();
      if (verb === 'run') expect(await running.ended).toMatchObject({ code: 0 });
      else expect(running.isOver).toBe(false);
    },
  );
});

async function obliterate({ target }: Scene): Promise<void> {
  const connection = queueConnectionOptions(testRedisAddress()) as never;
  const queue = new Queue(sharedQueueName, { prefix: keys.queuePrefix(target.fp), connection });
  await queue.obliterate({ force: true });
  await queue.close();
}
