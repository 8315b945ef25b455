import { describe, test } from 'vitest';
import { readBacklog } from '../../../src/ledger/backlog.ts';
import { isSettled, settle } from '../../../src/ledger/cell.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { changeMaxDeletes } from '../../../src/ledger/max-deletes.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { recoverOrphans } from '../../../src/ledger/start-run.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { keys } from '../../../src/redis/keys.ts';
import type { AtEnd } from '../../support/harness.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { claimChunk, forgetRun, readCells, writeTestRun } from './lone-run.ts';

const redis = await redisDuringTests();
const ledger = openLedger(redis);

const deleted = settle('deleted', 1, codeOfStatus(204));

/** A started run of 2 + 3 + 4 + 5 + 6 ids, and what a test does with it. */
async function openRun(atEnd: AtEnd, maxDeletes: number | null, canary = '') {
  const id = await writeTestRun(redis, [2, 3, 4, 5, 6], null, null, { maxDeletes, canary });
  atEnd(() => forgetRun(redis, id));
  const record = async () => (await readRun(redis, id))!;
  const start = () => ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
  await start();
  /** Claims an open chunk, settles all ids of it that may be sent, and returns the chunk. The result is the number of these ids. */
  const work = async (chunk: number) => {
    const { epoch, sendable, ledgerChunk } = await claimChunk(ledger, id, chunk);
    const sent = ledgerChunk.cells.flatMap((cell, index) => (index < sendable && !isSettled(cell) ? [index] : []));
    const results = sent.map((index) => ({ index, cell: deleted }));
    await ledger.update({ run: id, chunk, epoch, results });
    await ledger.returnChunk({
      run: id,
      chunk,
      epoch,
      dueInMs: null,
      sendable: sendable < ledgerChunk.cells.length ? sendable : undefined,
    });
    return sent.length;
  };
  /** Works on what is enqueued until nothing is. Returns how many ids were sent. */
  const workAll = async () => {
    let sent = 0;
    for (let enqueued = await enqueue(); enqueued.length > 0; enqueued = await enqueue())
      sent += await work(enqueued[0]!);
    return sent;
  };
  const enqueue = async () => {
    await ledger.enqueue(id);
    return (await redis.hkeys(keys.open(id))).map(Number).sort((a, b) => a - b);
  };
  const by = { at: Date.now(), action: 'max-deletes', by: 'operator', who: 'test', reason: 'more' } as const;
  const allow = async (most: number) => changeMaxDeletes(redis, await record(), most, by);
  return { id, start, work, workAll, enqueue, allow, record };
}

describe.concurrent('a run with --max-deletes', () => {
  /** @invariant exact-max-deletes: A run sends exactly the first ids that `--max-deletes` allows: all of them, and no other. */
  test.for(Array.from({ length: 20 }, (_, n) => n + 1))(
    'of %i of 20 ids sends exactly the first of them, and halts',
    async (most, { expect, onTestFinished }) => {
      const run = await openRun(onTestFinished, most);
      expect(await run.workAll()).toBe(most);
      const cells = (await Promise.all([0, 1, 2, 3, 4].map((n) => readCells(redis, run.id, n)))).flat();
      expect(cells.map((cell) => cell === deleted)).toEqual(cells.map((_, n) => n < most));
      const isAll = most === 20;
      expect(await run.record()).toMatchObject({
        state: isAll ? 'completed' : 'halted',
        halt: isAll ? '' : 'max_deletes',
        settled: most,
        reason: isAll
          ? ''
          : `${most} ids have an outcome, as many as --max-deletes allows; ${20 - most} ${most === 19 ? 'was' : 'were'} not sent`,
      });
    },
  );

  test('goes on exactly to a higher number, as often as one is given', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 3);
    let sent = await run.workAll();
    for (const most of [4, 4, 5, 10, 12, 19, 20]) {
      await run.allow(most);
      await run.start();
      sent += await run.workAll();
      expect(sent).toBe(most);
    }
    expect((await run.record()).state).toBe('completed');
  });

  test('halts again at once where it is resumed without a higher number', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 7);
    await run.workAll();
    await run.start();
    expect(await run.workAll()).toBe(0);
    expect(await run.record()).toMatchObject({ state: 'halted', halt: 'max_deletes' });
  });

  test('waits for ids that are to be retried, and does not halt before', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 2);
    await run.enqueue();
    const { epoch } = await claimChunk(ledger, run.id, 0);
    await ledger.update({ run: run.id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }] });
    await ledger.returnChunk({ run: run.id, chunk: 0, epoch, dueInMs: 0 });
    expect(await run.enqueue()).toEqual([0]);
    expect((await run.record()).state).toBe('running');
    expect(await run.workAll()).toBe(1);
    expect((await run.record()).state).toBe('halted');
  });

  test('takes a chunk up again whose holder worked by the lower number', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 1);
    await run.enqueue();
    const { epoch, sendable } = await claimChunk(ledger, run.id, 0);
    expect(sendable).toBe(1);
    await run.allow(2);
    await ledger.update({ run: run.id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }] });
    await ledger.returnChunk({ run: run.id, chunk: 0, epoch, dueInMs: null, sendable });
    expect(await run.workAll()).toBe(1);
    expect((await run.record()).settled).toBe(2);
  });

  test('takes no lower number than may have been sent, and a lower one before', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 17);
    await run.enqueue(); // four chunks, 14 ids
    await expect(run.allow(13)).rejects.toThrow(`--max-deletes 13: run ${run.id} may have sent up to 14 ids already`);
    expect((await run.record()).maxDeletes).toBe(17);
    await run.allow(14);
    expect(await run.workAll()).toBe(14);
    const partly = await openRun(onTestFinished, 4);
    await partly.enqueue();
    await expect(partly.allow(3)).rejects.toThrow('may have sent up to 4 ids already');
    expect(await partly.workAll()).toBe(4);
  });

  test('that gets the number late sends no more, and none where more may have been sent', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished, null);
    await run.enqueue();
    await expect(run.allow(12)).rejects.toThrow('may have sent up to 14 ids already');
    await run.allow(15);
    expect(await run.workAll()).toBe(15);
    expect((await run.record()).halt).toBe('max_deletes');
  });

  test.for([6, 12, 18])(
    'of %i ids counts those of a chunk that Redis has lost: they may have been sent',
    async (most, { expect, onTestFinished }) => {
      const run = await openRun(onTestFinished, null, '5:2');
      const [first, second] = (await run.enqueue()) as [number, number];
      const sent = (await run.work(first)) + (await run.work(second));
      await redis.del(keys.ledger(run.id, first));
      await run.allow(most);
      expect(sent + (await run.workAll())).toBeLessThanOrEqual(most);
    },
  );

  test('sends no other id when Redis has lost which chunks are left', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 4);
    expect(await run.enqueue()).toEqual([0, 1]);
    await redis.del(keys.open(run.id));
    expect(await recoverOrphans(ledger, run.id)).toBe(true);
    expect(await run.work((await run.enqueue())[1]!)).toBe(2);
    await redis.del(keys.open(run.id));
    expect(await recoverOrphans(ledger, run.id)).toBe(true);
    expect(await run.enqueue()).toEqual([0]); // of the other all that may be sent has its outcome
    expect(await run.workAll()).toBe(2);
    expect(await recoverOrphans(ledger, run.id)).toBe(false);
    expect(await run.record()).toMatchObject({ state: 'halted', settled: 4 });
  });

  test('counts what it may not send as no work that more workers could do', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 2);
    const { fp } = await run.record();
    await redis.sadd(keys.targetRuns(fp), run.id);
    onTestFinished(async () => void (await redis.del(keys.targetRuns(fp))));
    await run.work((await run.enqueue())[0]!);
    expect(await readBacklog(redis, fp, Date.now())).toMatchObject({ pending: 18, runnable: 0 });
  });

  test('and a canary obeys both', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 4, '2:1 5:2');
    expect(await run.enqueue()).toEqual([0]);
    await run.work(0);
    expect(await run.enqueue()).toEqual([1]);
    expect(await run.work(1)).toBe(2);
    expect(await run.enqueue()).toEqual([]);
    expect(await run.record()).toMatchObject({ halt: 'max_deletes', settled: 4, canary: '5:2' });
    await run.allow(6);
    await run.start();
    expect(await run.workAll()).toBe(2);
    expect(await run.record()).toMatchObject({ halt: 'max_deletes', settled: 6, canary: '' });
  });
});
