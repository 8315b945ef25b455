import { describe, test } from 'vitest';
import { readBacklog } from '../../../src/ledger/backlog.ts';
import { settle } from '../../../src/ledger/cell.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { recoverOrphans } from '../../../src/ledger/start-run.ts';
import { codeOfStatus, type SentOutcome } from '../../../src/model/outcome.ts';
import { keys } from '../../../src/redis/keys.ts';
import type { AtEnd } from '../../support/harness.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { claimChunk, forgetRun, writeTestRun } from './lone-run.ts';

const redis = await redisDuringTests();
const ledger = openLedger(redis);

const statusOf = { deleted: 204, failed: 409, unknown: 502, absent: 404, gone_unconfirmed: 404 } as const;

/** A started run with chunks of these sizes, and what a test does with it. */
async function openRun(atEnd: AtEnd, sizes: number[], brakes: { canary?: string; maxFailures?: string }) {
  const id = await writeTestRun(redis, sizes, null, null, brakes);
  atEnd(() => forgetRun(redis, id));
  const start = () => ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
  await start();
  /** Claims a chunk that is open, and settles its ids like this, the rest as deleted. */
  const settleChunk = async (chunk: number, ...outcomes: SentOutcome[]) => {
    const { epoch, known } = await claimChunk(ledger, id, chunk);
    const results = Array.from({ length: sizes[chunk]! }, (_, index) => {
      const outcome = outcomes[index] ?? 'deleted';
      return { index, cell: settle(outcome, 1, codeOfStatus(statusOf[outcome])) };
    });
    const { state } = await ledger.update({ run: id, chunk, epoch, results, known });
    await ledger.returnChunk({ run: id, chunk, epoch, dueInMs: null, resetsMarks: true });
    return state;
  };
  return { id, start, settleChunk, enqueue: () => ledger.enqueue(id), record: async () => (await readRun(redis, id))! };
}

describe.concurrent('a run with a canary', () => {
  const sizes = [1, 9, 500, 500, 500, 500, 500];
  const canary = '1:1 10:2';

  test('enqueues the chunks of a rung, and those behind it once all of them are settled', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished, sizes, { canary });
    expect([await run.enqueue(), await run.enqueue()]).toEqual([[0], []]);
    await run.settleChunk(0);
    expect([await run.enqueue(), await run.enqueue()]).toEqual([[1], []]);
    expect((await run.record()).canary).toBe('10:2');
    await run.settleChunk(1, 'deleted', 'absent', 'gone_unconfirmed');
    expect(await run.enqueue()).toEqual([2, 3, 4, 5]);
    expect((await run.record()).canary).toBe('');
  });

  test.for(['failed', 'unknown'] as const)(
    'is halted where an id of a rung is %s; resumed, it goes on to the next rung',
    async (outcome, { expect, onTestFinished }) => {
      const run = await openRun(onTestFinished, sizes, { canary });
      await run.enqueue();
      await run.settleChunk(0);
      await run.enqueue();
      await run.settleChunk(1, outcome);
      expect([await run.enqueue(), await run.enqueue()]).toEqual([[], []]);
      const reason =
        '1 of the first 10 ids failed or are unknown; no other id was sent, and resume sends the next part';
      expect(await run.record()).toMatchObject({ state: 'halted', halt: 'canary', by: 'guard', next: 2, reason });
      await run.start();
      expect(await run.enqueue()).toEqual([2, 3, 4, 5]);
    },
  );

  test('is halted where none of the first ids was there, unless that is expected', async ({
    expect,
    onTestFinished,
  }) => {
    for (const isExpected of [false, true]) {
      const run = await openRun(onTestFinished, sizes, { canary });
      if (isExpected) await redis.hset(`expunge:{${run.id}}:run`, 'expectAbsent', 1);
      await run.enqueue();
      await run.settleChunk(0, 'absent');
      expect(await run.enqueue()).toEqual(isExpected ? [1] : []);
      expect((await run.record()).halt).toBe(isExpected ? '' : 'canary');
    }
  });

  test('may have as large a share of failures in a rung as --max-failures allows of the list', async ({
    expect,
    onTestFinished,
  }) => {
    for (const [maxFailures, failures, enqueued] of [
      ['502', 2, [2, 3, 4, 5]],
      ['502', 3, []],
      ['100', 1, []],
      ['20%', 2, [2, 3, 4, 5]],
      ['19%', 2, []],
    ] as const) {
      const run = await openRun(onTestFinished, sizes, { canary, maxFailures });
      await run.enqueue();
      await run.settleChunk(0);
      await run.enqueue();
      await run.settleChunk(1, ...Array.from({ length: failures }, () => 'failed' as const));
      expect(await run.enqueue()).toEqual(enqueued);
    }
  });

  test('is not passed by what Redis has lost: its ids are found again', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, sizes, { canary });
    for (const chunk of [0, 1]) {
      expect(await run.enqueue()).toEqual([chunk]);
      await redis.del(keys.open(run.id));
      expect(await run.enqueue()).toEqual([]);
      expect(await recoverOrphans(ledger, run.id)).toBe(true);
      expect(await run.enqueue()).toEqual([chunk]);
      await run.settleChunk(chunk);
    }
    expect(await run.enqueue()).toEqual([2, 3, 4, 5]);
  });

  test('does not forget what failed when it is paused in a rung', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, sizes, { canary });
    await run.enqueue();
    await run.settleChunk(0, 'failed');
    await ledger.steer(run.id, Date.now(), { action: 'pause', reason: '', by: 'operator', who: 'test' });
    await run.start();
    expect(await run.enqueue()).toEqual([]);
    expect((await run.record()).halt).toBe('canary');
    await run.start();
    expect(await run.enqueue()).toEqual([1]);
    await run.settleChunk(1);
    expect(await run.enqueue()).toEqual([2, 3, 4, 5]);
  });

  test('counts its waiting chunks as no work that more workers could do', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, sizes, { canary });
    const { fp } = await run.record();
    await redis.sadd(keys.targetRuns(fp), run.id);
    onTestFinished(async () => void (await redis.del(keys.targetRuns(fp))));
    expect(await readBacklog(redis, fp, Date.now())).toMatchObject({ runnable: 500 });
    await run.enqueue();
    expect(await readBacklog(redis, fp, Date.now())).toMatchObject({ runnable: 500 });
  });

  test('goes on where the list ends before a rung', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, [1, 3, 2], { canary: '1:1 4:2' });
    for (const chunk of [0, 1]) {
      expect(await run.enqueue()).toEqual([chunk]);
      await run.settleChunk(chunk);
    }
    expect(await run.enqueue()).toEqual([2]);
    expect(await run.settleChunk(2)).toBe('completed');
  });

  test('does not halt a run that is over', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, [1, 3], { canary: '1:1 4:2' });
    await run.enqueue();
    await run.settleChunk(0);
    await run.enqueue();
    expect(await run.settleChunk(1, 'failed')).toBe('completed');
    await run.enqueue();
    expect((await run.record()).state).toBe('completed');
  });
});

describe.concurrent('a run with --max-failures', () => {
  test('is halted by one failure more, of whatever kind, over all holders', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, [100, 100, 100], { maxFailures: '3' });
    await run.enqueue();
    expect(await run.settleChunk(0, 'failed', 'unknown')).toBe('running');
    expect(await run.settleChunk(1, 'failed')).toBe('running');
    expect(await run.settleChunk(2, 'failed')).toBe('completed'); // it was the last chunk
    const other = await openRun(onTestFinished, [100, 100, 100], { maxFailures: '3' });
    await other.enqueue();
    expect(await other.settleChunk(0, 'failed', 'unknown', 'failed', 'failed')).toBe('halted');
    expect(await other.record()).toMatchObject({
      halt: 'max_failures',
      reason: '4 of 100 ids failed or are unknown, --max-failures is 3',
    });
  });

  test('that is a share is halted once 100 ids have an outcome', async ({ expect, onTestFinished }) => {
    const failed = (count: number) => Array.from({ length: count }, () => 'failed' as const);
    const run = await openRun(onTestFinished, [50, 50, 500], { maxFailures: '5.5%' });
    await run.enqueue();
    expect(await run.settleChunk(0, ...failed(5))).toBe('running');
    expect(await run.settleChunk(1, ...failed(1))).toBe('halted');
    expect((await run.record()).reason).toBe('6 of 100 ids failed or are unknown, --max-failures is 5.5%');
  });

  test('that is a share is halted by the 100th id also where that one is deleted', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished, [50, 49, 1, 500], { maxFailures: '5.5%' });
    await run.enqueue();
    expect(await run.settleChunk(0, ...Array.from({ length: 6 }, () => 'failed' as const))).toBe('running');
    expect(await run.settleChunk(1)).toBe('running');
    expect(await run.settleChunk(2)).toBe('halted');
    expect((await run.record()).reason).toBe('6 of 100 ids failed or are unknown, --max-failures is 5.5%');
    await run.start();
    expect(await run.settleChunk(3)).toBe('completed');
  });

  test('counts from its last start, so that an operator may go on', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, [10, 10, 10, 10], { maxFailures: '1' });
    await run.enqueue();
    expect(await run.settleChunk(0, 'failed', 'failed')).toBe('halted');
    await run.start();
    expect(await run.settleChunk(1, 'failed')).toBe('running');
    expect(await run.settleChunk(2, 'failed')).toBe('halted');
  });

  test('of 0 is halted by the first failure', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, [10, 10], { maxFailures: '0' });
    await run.enqueue();
    expect(await run.settleChunk(0, 'failed')).toBe('halted');
  });
});
