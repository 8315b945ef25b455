import { afterEach, describe, expect, test } from 'vitest';
import { settle } from '../../../src/ledger/cell.ts';
import { claimList } from '../../../src/ledger/create-run.ts';
import { expireRun, markDelivered } from '../../../src/ledger/end-run.ts';
import { type Claim, openLedger } from '../../../src/ledger/ledger.ts';
import { addMeasures } from '../../../src/ledger/measures.ts';
import { isFinalized, isOver, type Run, readRun } from '../../../src/ledger/run.ts';
import { finalizeTally } from '../../../src/ledger/tally.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { keys } from '../../../src/redis/keys.ts';
import { listRuns } from '../../support/list-runs.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { redisKeysWith } from '../../support/redis-keys.ts';
import { forgetRun, writeTestRun } from './lone-run.ts';

let id: string;
const redis = await redisDuringTests();
const ledger = openLedger(redis);
afterEach(async () => {
  await forgetRun(redis, id);
  await redis.unlink(keys.list(id));
});

const deleted = settle('deleted', 1, codeOfStatus(204));
const dayMs = 86_400_000;

function steer(action: 'start' | 'pause' | 'cancel') {
  return ledger.steer(id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });
}

async function claim(chunk = 0): Promise<Claim> {
  const claimed = await ledger.claim(id, chunk);
  if (typeof claimed === 'string') throw new Error(`there is nothing to claim: ${claimed}`);
  return claimed;
}

async function record(): Promise<Run> {
  return (await readRun(redis, id))!;
}

/** A running run whose list leads to it. */
async function startRun(sizes = [1], isDetached = false): Promise<void> {
  id = await writeTestRun(redis, sizes);
  await redis.set(keys.list(id), id);
  if (isDetached) await redis.hset(keys.run(id), 'detached', 1);
  await steer('start');
  await ledger.enqueue(id);
}

/** Each way in which a run ends for good. */
const endings: Record<string, () => Promise<unknown>> = {
  'the update that settles the last id': async () => {
    await startRun();
    const { epoch } = await claim();
    await ledger.update({ run: id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }] });
  },
  'a cancel while nobody holds a chunk': async () => {
    await startRun();
    await steer('cancel');
  },
  'the last chunk that a cancelled run gets back': async () => {
    await startRun();
    const { epoch } = await claim();
    await steer('cancel');
    await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0 });
  },
  'a cancel over a dead holder': async () => {
    await startRun();
    await claim();
    await steer('cancel');
    await redis.hset(keys.run(id), 'changedAt', Date.now() - 20_000);
    await ledger.reclaim(id);
  },
  'a start after the last result': async () => {
    await startRun();
    const { epoch } = await claim();
    await steer('pause');
    await ledger.update({ run: id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }] });
    await redis.hset(keys.run(id), { state: 'paused' }); // as before its end was noticed
    await redis.hdel(keys.run(id), 'finalized');
    await redis.persist(keys.run(id));
    await steer('start');
  },
};

describe('a run that has ended', () => {
  test.each(Object.entries(endings))('expires with its end, though nobody comes after it: %s', async (_, end) => {
    await end();
    expect(isFinalized((await record()).state)).toBe(true);
    expect(await redis.pttl(keys.run(id))).toBeGreaterThan(0);
  });

  /** @invariant nothing-stays: All keys of an ended run expire. No job, log, error or report contains a secret. */
  test('expires whole, whoever looks at it first', async () => {
    await startRun([3, 2, 2]);
    await addMeasures(redis, id, new Map([['requests', 1]]));
    await steer('cancel');
    await finalizeTally(redis, await record());
    await addMeasures(redis, id, new Map([['requests', 1]])); // a worker that stores its last figures
    const all = await redisKeysWith(`{${id}}`);
    expect(all.length).toBeGreaterThan(8);
    const left = await Promise.all([...all, keys.list(id)].map((key) => redis.pttl(key)));
    expect(left.filter((ms) => ms <= 0)).toEqual([]);
  });

  test('is kept for a day at least while its report is not delivered', async () => {
    await startRun();
    await redis.hset(keys.run(id), 'keepMs', 1_000);
    const { epoch } = await claim();
    await ledger.update({ run: id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }] });
    await finalizeTally(redis, await record());
    expect(await redis.pttl(keys.run(id))).toBeGreaterThan(dayMs - 60_000);
    await markDelivered(redis, await record(), '/reports');
    await expireRun(redis, await record());
    expect(await redis.pttl(keys.run(id))).toBeLessThanOrEqual(1_000);
  });

  test('leaves nothing behind where it expired before somebody could see to its chunks', async () => {
    await startRun([1, 1]);
    await steer('cancel');
    await redis.del(keys.run(id)); // as when its time is over
    await listRuns(redis);
    expect(await redisKeysWith(`{${id}}`)).toEqual([]);
  });
});

describe('a list', () => {
  test('leads to its ended run until the report of that is delivered', async () => {
    await startRun();
    const { epoch } = await claim();
    await ledger.update({ run: id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }] });
    expect(await claimList(redis, id, Date.now())).toBe(id);
    await markDelivered(redis, await record(), '/reports');
    expect(await claimList(redis, id, Date.now())).not.toBe(id);
  });

  test.each([
    ['a detached run, which workers end', () => startRun([1], true).then(() => steer('cancel'))],
    [
      'a paused run that somebody cancelled',
      () =>
        startRun()
          .then(() => steer('pause'))
          .then(() => steer('cancel')),
    ],
  ])('does not wait for a report that nobody writes: %s', async (_, end) => {
    await end();
    expect(isOver(await record())).toBe(true);
  });

  test('does not lead to the chunks of a run whose record has expired', async () => {
    await startRun([1, 1]);
    await redis.zrem(keys.runs, id); // else whoever makes a run now removes the chunks
    await redis.del(keys.run(id));
    const other = await claimList(redis, id, Date.now());
    expect(other).not.toBe(id);
    expect(await claimList(redis, id, Date.now())).toBe(other); // a producer has just claimed it
  });
});
