import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { shareForm } from '../../../src/ledger/answer-forms.ts';
import { storeBodies } from '../../../src/ledger/bodies.ts';
import { addMeasures, readMeasures } from '../../../src/ledger/measures.ts';
import { readRun, sumActiveMs } from '../../../src/ledger/run.ts';
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

const add = (changes: Record<string, number>) => addMeasures(redis, id, new Map(Object.entries(changes)));

test('what processes measured adds up, in whole numbers', async () => {
  await add({ requests: 3, workMs: 10.4, l8: 3 });
  await add({});
  await add({ requests: 2, workMs: 10.6, l16: 2 });
  expect(await readMeasures(redis, id)).toMatchObject({ requests: 5, workMs: 21, refused: 0 });
  expect((await readMeasures(redis, id)).latencyMs!.p50).toBeCloseTo(0.2);
  expect(await redis.pttl(keys.measures(id))).toBe(-1);
});

test('the time of requests counts with them, so that a killed process leaves both', async () => {
  const set = (fields: object) => redis.hset(keys.run(id), fields);
  const activeMs = async () => sumActiveMs((await readRun(redis, id))!, Date.now() + 3_600_000);
  await set({ state: 'running', activeMs: 0, activeUntil: Date.now() - 4_000 });
  await add({ workMs: 1_000 });
  expect(await activeMs(), 'nothing was sent').toBe(0);
  await add({ requests: 400, workMs: 1_000 });
  expect(await activeMs()).toBeGreaterThanOrEqual(4_000);
  await redis.hdel(keys.run(id), 'activeUntil'); // it is paused
  const before = await activeMs();
  await add({ requests: 1 });
  expect(await activeMs()).toBe(before);
  expect(await redis.hexists(keys.run(id), 'activeUntil')).toBe(0);
});

test('answers with a body add up over all processes, and what is stored again, or late, counts nothing twice', async () => {
  const bodies = async () => (await readRun(redis, id))!.bodies;
  expect(await bodies()).toBe(0);
  for (const answers of [3, 3, 7, 3, 7]) await storeBodies(redis, id, 'one', answers);
  expect(await bodies()).toBe(7);
  await storeBodies(redis, id, 'other', 2);
  expect(await bodies()).toBe(9);
  expect(await readMeasures(redis, id)).toMatchObject({ requests: 0, latencyMs: null });
});

test('the form of the successes of a run is the first one that was stored', async () => {
  const share = (form: string, name = 'views 200') => shareForm(redis, id, name, form);
  expect([await share(''), await share('one'), await share('two'), await share('')]).toEqual(['', 'one', 'one', 'one']);
  expect(await share('two', 'views 202')).toBe('two');
  expect(await readMeasures(redis, id)).toMatchObject({ requests: 0, latencyMs: null });
});

describe.each([
  ['measures', () => add({ requests: 1 })],
  ['answers with a body', () => storeBodies(redis, id, 'one', 1)],
  ['form', () => shareForm(redis, id, 'views 200', 'one')],
])('the last %s', (_, store) => {
  test('of a finalized run go with its record', async () => {
    await redis.pexpire(keys.run(id), 600_000);
    await store();
    const left = await redis.pttl(keys.measures(id));
    expect([left > 0, left <= 600_000]).toEqual([true, true]);
  });

  test('of a run whose record has expired leave nothing behind', async () => {
    await redis.zrem(keys.runs, id); // else whoever makes a run now removes what is left of this one
    await redis.rename(keys.run(id), keys.details(id));
    await store();
    expect(await redis.exists(keys.measures(id), keys.run(id))).toBe(0);
    await redis.rename(keys.details(id), keys.run(id));
  });
});
