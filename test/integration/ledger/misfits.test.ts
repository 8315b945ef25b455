import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { definitionsText } from '../../../src/model/resource.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis } from '../../support/redis.ts';
import { know } from '../../support/resources.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

let redis: RedisClient;
let ledger: Ledger;
let id: string;
beforeAll(async () => {
  redis = await openTestRedis();
});
afterAll(() => {
  know({});
  redis.disconnect();
});

/** A run of two open chunks, and a process that defines its resource in another way. */
beforeEach(async () => {
  ledger = openLedger(redis);
  id = await writeTestRun(redis, [2, 2]);
  know({ dashboards: { path: '/v1/dashboards/{id}' } });
  await redis.hset(keys.run(id), { definitions: definitionsText(['dashboards']) });
  await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
  await ledger.enqueue(id);
  know({ dashboards: { path: '/v2/dashboards/{id}' } });
});
afterEach(() => forgetRun(redis, id));

const misfit = async () => (await readRun(redis, id))?.misfit ?? null;
const hold = (chunk: number) => redis.hset(keys.open(id), { [chunk]: '7' });

describe('a process that defines a resource of a run in another way', () => {
  test('gets no chunk of it, and the run records why', async () => {
    expect(await ledger.claim(id, 0)).toBe('other_definition');
    const why = '"path" of the resource dashboards is "/v2/dashboards/{id}" here instead of "/v1/dashboards/{id}"';
    expect([await misfit(), await ledger.describeMisfit(id)]).toEqual([expect.objectContaining({ why }), why]);
    expect(await redis.hgetall(keys.open(id))).toEqual({ 0: '0', 1: '0' });
  });

  test('is not recorded while another process deletes the run', async () => {
    await hold(1);
    expect([await ledger.claim(id, 0), await misfit()]).toEqual(['other_definition', null]);
  });

  test('is recorded if it got the chunk of a process that has died', async () => {
    await hold(0);
    expect([await ledger.claim(id, 0), await misfit()]).toEqual(['other_definition', expect.anything()]);
  });

  test('is no longer recorded once another process has claimed a chunk', async () => {
    await ledger.claim(id, 0);
    know({ dashboards: { path: '/v1/dashboards/{id}' } });
    expect(await openLedger(redis).claim(id, 1)).toMatchObject({ epoch: 1 });
    expect(await misfit()).toBeNull();
  });

  test('makes nothing of a run that Redis has lost', async () => {
    await ledger.describeMisfit(id);
    await redis.del(keys.run(id));
    await ledger.claim(id, 0);
    expect(await redis.exists(keys.run(id))).toBe(0);
  });
});
