import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readRunning } from '../../../src/ledger/list-runs.ts';
import { readRun, schemaVersion } from '../../../src/ledger/run.ts';
import type { Log } from '../../../src/logger.ts';
import { keys } from '../../../src/redis/keys.ts';
import { Recoverer } from '../../../src/worker/recoverer.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

let id: string;
let fp: string;
const redis = await redisDuringTests();
const ledger = openLedger(redis);

beforeEach(async () => {
  id = await writeTestRun(redis, [2]);
  fp = (await readRun(redis, id))!.fp;
  await redis.sadd(keys.targetRuns(fp), id);
  await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
  await ledger.enqueue(id);
  await redis.hset(keys.run(id), { schema: schemaVersion + 1, files: '?' });
});
afterEach(async () => {
  await forgetRun(redis, id);
  await redis.unlink(keys.targetRuns(fp), keys.recoverer(fp));
});

describe('a run that another version has written', () => {
  test('is left alone by the recoverer, and logged once', async () => {
    const told: unknown[] = [];
    const recovered: string[] = [];
    const log = { error: (facts: unknown) => told.push(facts), info: () => {} } as unknown as Log;
    const enqueuer = {
      addJobs: async () => {},
      enqueue: async () => {},
      recover: async (run: string) => void recovered.push(run),
    };
    const recoverer = new Recoverer({ ledger, enqueuer, fp, log });
    for (let turn = 0; turn < 2; turn++) {
      await redis.del(keys.recoverer(fp));
      await recoverer.recover();
    }
    expect(recovered).toEqual([]);
    expect(told).toEqual([{ run: id, reason: expect.stringContaining('another version of expunge') }]);
    expect(await redis.sismember(keys.targetRuns(fp), id)).toBe(1);
  });

  test('gives nobody a chunk, and is no run that waits for one', async () => {
    const before = await redis.hgetall(keys.run(id));
    expect(await ledger.claim(id, 0)).toBe('other_version');
    expect(await redis.hgetall(keys.run(id))).toEqual(before);
    expect(await redis.hgetall(keys.open(id))).toEqual({ 0: '0' });
    expect(await readRunning(redis, fp)).toEqual([]);
  });
});
