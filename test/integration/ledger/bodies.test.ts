import { afterEach, beforeEach, expect, test } from 'vitest';
import { storeBodies } from '../../../src/ledger/bodies.ts';
import { readMeasures } from '../../../src/ledger/measures.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

let id: string;
const redis = await redisDuringTests();
beforeEach(async () => {
  id = await writeTestRun(redis, [1]);
});
afterEach(async () => {
  await forgetRun(redis, id);
  await redis.del(keys.measures(id));
});

const bodies = async () => (await readRun(redis, id))!.bodies;

test('answers with a body add up over all processes', async () => {
  expect(await bodies()).toBe(0);
  await storeBodies(redis, id, 'one', 3);
  await storeBodies(redis, id, 'other', 2);
  await storeBodies(redis, id, 'one', 7);
  expect(await bodies()).toBe(9);
  expect(await readMeasures(redis, id)).toMatchObject({ requests: 0, latencyMs: null });
});

test('what is stored again, or late, counts nothing twice', async () => {
  for (const answers of [3, 3, 7, 3, 7]) await storeBodies(redis, id, 'one', answers);
  expect(await bodies()).toBe(7);
});

test('those of a finalized run go with its record', async () => {
  await redis.pexpire(keys.run(id), 60_000);
  await storeBodies(redis, id, 'one', 1);
  const left = await redis.pttl(keys.measures(id));
  expect([await bodies(), left > 30_000, left <= 60_000]).toEqual([1, true, true]);
});

test('nothing is left behind for a run whose record has expired', async () => {
  await redis.zrem(keys.runs, id); // else whoever makes a run now removes what is left of this one
  await redis.rename(keys.run(id), keys.details(id));
  await storeBodies(redis, id, 'one', 1);
  expect(await redis.exists(keys.measures(id), keys.run(id))).toBe(0);
  await redis.rename(keys.details(id), keys.run(id));
});
