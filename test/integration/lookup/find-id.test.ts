import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { settle, unmark } from '../../../src/ledger/cell.ts';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import { encodeBlock } from '../../../src/ledger/manifest.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { findId } from '../../../src/lookup/find-id.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis } from '../../support/redis.ts';
import { claimChunk, forgetRun, writeTestRun } from '../ledger/lone-run.ts';

let redis: RedisClient;
let ledger: Ledger;
let id: string;
beforeAll(async () => {
  redis = await openTestRedis();
  ledger = openLedger(redis);
});
afterAll(() => redis.disconnect());
beforeEach(async () => {
  id = await writeTestRun(redis, [3, 2]);
});
afterEach(() => forgetRun(redis, id));

const start = () => ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });

/** The row of a view, and how many rows were searched. */
async function find(view: string) {
  let searched = 0;
  const found = await findId(redis, (await readRun(redis, id))!, { resource: 'views', id: view }, (n) => {
    searched += n;
  });
  return { row: found.rows[0], count: found.rows.length, searched };
}

describe('an id that has no outcome', () => {
  test('waits, is in flight, or waits for its next try', async () => {
    expect((await find('v-0-1')).row).toMatchObject({
      outcome: 'pending',
      line: 2,
      attempts: 0,
      open: { isInFlight: false, inDoubt: false, nextTryAt: null },
    });
    await start();
    await ledger.enqueue(id);
    const { epoch } = await claimChunk(ledger, id, 0);
    await ledger.update({ run: id, chunk: 0, epoch, wanted: [1] });
    expect((await find('v-0-1')).row?.open).toEqual({ isInFlight: true, inDoubt: false, nextTryAt: null });
    expect((await find('v-0-2')).row?.open).toMatchObject({ isInFlight: false });

    const tried = unmark(16, 3, true);
    await ledger.update({ run: id, chunk: 0, epoch, results: [{ index: 1, cell: tried }] });
    const before = Date.now();
    await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 60_000 });
    const { row } = await find('v-0-1');
    expect(row).toMatchObject({ outcome: 'pending', attempts: 3, open: { isInFlight: false, inDoubt: true } });
    expect(row!.open!.nextTryAt!).toBeGreaterThanOrEqual(before + 59_000); // the clock of Redis may be a moment off
  });

  test('of a run that was cancelled has the outcome that finalization gave it, and waits for nothing', async () => {
    await ledger.steer(id, Date.now(), { action: 'cancel', reason: '', by: 'operator', who: 'test' });
    expect((await find('v-1-0')).row).toMatchObject({ outcome: 'not_attempted', code: 'run_cancelled', open: null });
  });
});

describe('an id', () => {
  test('is found where it is sent and where it was settled while reading, of its own resource or of none', async () => {
    const row = { file: 0, resource: 'views', id: 'v-0-0', first: null } as const;
    const duplicate = { outcome: 'duplicate', code: 'duplicate' } as const;
    const rows = [
      ...[7, 8, 9].map((line) => ({ ...row, ...duplicate, line, first: { file: 0, line: 1 } })),
      { ...row, line: 10, resource: null, outcome: 'rejected', code: 'unknown_resource' },
      { ...row, ...duplicate, line: 11, resource: 'annotations' },
      { ...row, ...duplicate, line: 12, id: 'v-0-00' },
    ];
    await writeBlocks(rows);
    await start();
    await ledger.enqueue(id);
    const { epoch } = await claimChunk(ledger, id, 0);
    await ledger.update({
      run: id,
      chunk: 0,
      epoch,
      results: [{ index: 0, cell: settle('failed', 1, codeOfStatus(403)) }],
    });
    await redis.hset(keys.details(id), '0.0', 'not yours');
    const found = await findId(redis, (await readRun(redis, id))!, { resource: 'views', id: 'v-0-0' }, () => {});
    expect(found.rows.map(({ line, outcome }) => [line, outcome])).toEqual([
      [1, 'failed'],
      [7, 'duplicate'],
      [8, 'duplicate'],
      [9, 'duplicate'],
      [10, 'rejected'],
    ]);
    expect(found.rows[0]).toMatchObject({ status: 403, code: 'http_403', excerpt: 'not yours', open: null });
  });

  test('that a run does not have is looked for in every chunk of it', async () => {
    expect(await find('v-1-2')).toEqual({ row: undefined, count: 0, searched: 5 });
    const others = await findId(redis, (await readRun(redis, id))!, { resource: 'annotations', id: 'v-0-0' }, () => {});
    expect(others).toEqual({ rows: [], more: 0 });
  });

  test('that is listed very often is shown a hundred times and counted', async () => {
    const row = { file: 0, resource: 'views', id: 'v-0-0', outcome: 'duplicate', code: 'duplicate' } as const;
    await writeBlocks(Array.from({ length: 400 }, (_, n) => ({ ...row, line: n + 6, first: { file: 0, line: 1 } })));
    const found = await findId(redis, (await readRun(redis, id))!, { resource: 'views', id: 'v-0-0' }, () => {});
    expect([found.rows.length, found.more]).toEqual([100, 301]);
  });

  test('of a chunk that Redis has lost is an error, not an id that is in no run', async () => {
    await redis.del(keys.manifest(id, 1));
    await expect(find('v-1-0')).rejects.toThrow('manifest chunk 1 is missing in Redis');
  });
});

/** Adds a block of settled rows. */
async function writeBlocks(rows: unknown[]): Promise<void> {
  await redis.set(keys.settled(id, 0), encodeBlock({ n: 0, rows } as Parameters<typeof encodeBlock>[0]));
  await redis.hset(keys.run(id), { blocks: 1, rows: 5 + rows.length });
}
