import { expect, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { never, until } from '../../support/processes.ts';

const ids = makeIds('t', 6_000);

test('three workers send nothing after --stop-at, and what was sent has its outcome', async ({ onTestFinished }) => {
  const { sandbox, redis, add, submit, run } = await openLocalWorkers(onTestFinished, {
    objects: annotations(ids),
    latencyMs: 20,
  });
  await add();
  await add();
  const id = await submit(ids);
  await until('it sends', () => sandbox.seen.length > 200);
  await redis.hset(keys.run(id), 'stopAt', Date.now());
  await until('it is paused', async () => (await run(id)).state === 'paused');
  await until('no chunk is held', async () => !(await redis.hvals(keys.open(id))).some((epoch) => epoch !== '0'));
  const sent = sandbox.seen.length;
  await never('a request is sent', () => sandbox.seen.length > sent, 1_000);
  const { settled, attempts, by, counts } = await run(id);
  expect([settled, attempts, by, counts.deleted]).toEqual([sent, sent, 'guard', sent]);
});
