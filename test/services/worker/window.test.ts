import { expect, test } from 'vitest';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { keys } from '../../../src/redis/keys.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { openLocalWorkers } from '../../support/local-workers.ts';
import { never, until } from '../../support/processes.ts';

const ids = makeIds('w', 3_000);

/** A window that opens or closes in this many hours. */
const inHours = (from: number, to: number) =>
  [from, to].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)).join('-');

/** Three workers with a run, and how many of its chunks they hold. */
async function openThree(atEnd: (task: () => Promise<void>) => void, window: string) {
  const workers = await openLocalWorkers(atEnd, { objects: annotations(ids), latencyMs: 2 });
  await workers.add();
  await workers.add();
  const id = await workers.submit(ids, { window });
  const held = async () => (await workers.redis.hvals(keys.open(id))).filter((epoch) => epoch !== '0').length;
  return { ...workers, id, held };
}

test('outside its window a run stays running, sends nothing, holds no chunk, and goes on when it opens', async ({
  onTestFinished,
}) => {
  const { sandbox, redis, id, run, held } = await openThree(onTestFinished, inHours(2, 3));
  await until('it is found closed', async () => (await run(id)).closedUntil > Date.now());
  await until('no chunk is held', async () => (await held()) === 0);
  await never('a request is sent', () => sandbox.seen.length > 0, 1_000);
  expect(sandbox.seen).toEqual([]);
  expect(await run(id)).toMatchObject({ state: 'running', attempts: 0 });
  await redis.hset(keys.run(id), { window: inHours(-2, 2), closedUntil: 0 });
  await until('it ends', async () => (await run(id)).state === 'completed', 60_000);
  expect((await run(id)).counts).toMatchObject({ deleted: ids.length, failed: 0 });
});

test('a window that closes ends what is in flight, counts no attempt, and lets a cancel end the run at once', async ({
  onTestFinished,
}) => {
  const { sandbox, redis, id, run, held } = await openThree(onTestFinished, inHours(-2, 2));
  await until('it sends', async () => sandbox.seen.length > 100);
  await redis.hset(keys.run(id), { window: inHours(2, 3) });
  await until('no chunk is held', async () => (await held()) === 0);
  const { settled, attempts, state } = await run(id);
  expect([state, attempts]).toEqual(['running', settled]);
  expect(sandbox.seen).toHaveLength(settled);
  const cancel = { action: 'cancel', reason: '', by: 'operator', who: 'test' } as const;
  expect(await openLedger(redis).steer(id, Date.now(), cancel)).toMatchObject({ after: 'cancelled' });
  expect(sandbox.seen).toHaveLength(settled);
});
