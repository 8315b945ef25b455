import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { keptChanges } from '../../../src/ledger/changes.lua.ts';
import { markPublished, type RunChange, readChanges } from '../../../src/ledger/changes.ts';
import { announceProtection, announceUnreadProtection, refuseUnprotected } from '../../../src/ledger/protection.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { expectKept } from '../../support/redis-keys.ts';

const redis = await redisDuringTests();

const change = (n: number): RunChange => {
  return { n, at: 1_000 * n, state: 'paused', reason: `the ${n}th`, by: 'operator', who: 'ana', halt: '' };
};

test('the changes of a run that nobody was told are read, as far as they are kept', async ({ onTestFinished }) => {
  const id = `test-${randomUUID()}`;
  onTestFinished(async () => void (await redis.unlink(keys.run(id))));
  const last = keptChanges + 3;
  const stored = Array.from({ length: keptChanges }, (_, i) => change(last - i));
  await redis.hset(keys.run(id), Object.fromEntries(stored.map((one) => [`change:${one.n}`, JSON.stringify(one)])));
  const numbers = async (told: number, changes = last) =>
    (await readChanges(redis, id, changes, told)).map(({ n }) => n);
  expect(await readChanges(redis, id, last, last - 2)).toEqual([change(last - 1), change(last)]);
  expect(await numbers(0)).toEqual(stored.map(({ n }) => n).reverse());
  expect(await numbers(last)).toEqual([]);
  expect(await numbers(last + 1)).toEqual([]);
  await redis.hdel(keys.run(id), `change:${last - 1}`); // dropped since its number was read
  expect(await numbers(last - 2)).toEqual([last]);
});

test('who was told is noted in the record of a run, and nowhere once that is gone', async ({ onTestFinished }) => {
  const id = `test-${randomUUID()}`;
  onTestFinished(async () => void (await redis.unlink(keys.run(id))));
  await markPublished(redis, id, 3);
  expect(await readRun(redis, id)).toBeNull();
  await redis.hset(keys.run(id), { state: 'paused' });
  await markPublished(redis, id, 3);
  expect(await redis.hget(keys.run(id), 'published')).toBe('3');
});

test('a list without protected ids is refused for a day after a worker of its target has named some', async ({
  onTestFinished,
}) => {
  const fp = `test-${randomUUID()}`;
  onTestFinished(async () => void (await redis.unlink(keys.protection(fp))));
  const unprotected = { isProtected: false, ids: [] };
  const listOf = (...ids: string[]) => ({ isProtected: true, ids: [ids] });
  await refuseUnprotected(redis, fp, unprotected);
  await announceUnreadProtection(redis, fp);
  const refusal = {
    code: 'GUARD',
    message: 'the list protects no ids, but the settings of a worker of its target do; nothing was sent',
    next: 'read it where the file is: with --protect FILE, or at a worker of this target with --http',
  };
  await expect(refuseUnprotected(redis, fp, unprotected)).rejects.toMatchObject(refusal);
  await refuseUnprotected(redis, fp, listOf('a-1', 'a-2'));
  await announceProtection(redis, fp, protectedIds('a-2', 'a-9'));
  await announceUnreadProtection(redis, fp); // what is known stays
  await expect(refuseUnprotected(redis, fp, unprotected)).rejects.toMatchObject(refusal);
  await refuseUnprotected(redis, fp, listOf('a-1', 'a-3'));
  await expect(refuseUnprotected(redis, fp, listOf('a-1', 'a-2'))).rejects.toThrow('a-2 would be deleted');
  await expectKept(redis, keys.protection(fp), 86_400_000);
});

async function* protectedIds(...ids: string[]) {
  yield ids;
}
