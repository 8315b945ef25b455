import { afterAll, beforeAll, describe, test } from 'vitest';
import { settle } from '../../../src/ledger/cell.ts';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { haltRules } from '../../../src/ledger/thresholds.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { decodeCursor, firstCursor } from '../../../src/report/follow-cursor.ts';
import { followOutcomes } from '../../../src/report/follow-outcomes.ts';
import type { AtEnd } from '../../support/harness.ts';
import { openTestRedis } from '../../support/redis.ts';
import { claimChunk, forgetRun, writeTestRun } from '../ledger/lone-run.ts';

let redis: RedisClient;
let ledger: Ledger;
beforeAll(async () => {
  redis = await openTestRedis();
  ledger = openLedger(redis, haltRules);
});
afterAll(() => redis.disconnect());

const [deleted, unknown] = [settle('deleted', 1, codeOfStatus(204)), settle('unknown', 1, codeOfStatus(502))];

/** A started run of chunks of two ids, and one that follows it. */
async function openRun(atEnd: AtEnd, chunks = 3) {
  const id = await writeTestRun(redis, new Array(chunks).fill(2));
  atEnd(() => forgetRun(redis, id));
  await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
  await ledger.enqueue(id);
  let cursor = firstCursor(chunks);
  let last = { text: '', rows: 0 };
  /** The ids and outcomes that are written since the last look; a correction with its `!`. */
  const look = async (most = Number.POSITIVE_INFINITY) => {
    const seen: string[] = [];
    for await (const part of followOutcomes(redis, (await readRun(redis, id))!, cursor)) {
      const rows = part.rows.slice(0, most - seen.length);
      seen.push(...rows.map((row) => `${row.id} ${row.outcome}${part.isCorrection ? '!' : ''}`));
      last = { text: part.cursor, rows: rows.length };
      if (seen.length === most) break;
    }
    return seen;
  };
  /** Goes on as another process does that has the last cursor and the number of rows behind it. */
  const goOn = () => {
    cursor = decodeCursor(id, chunks, `${last.text}+${last.rows}`);
  };
  const results = (cell: number) => [0, 1].map((index) => ({ index, cell }));
  const settleChunk = async (chunk: number, cell = deleted) => {
    const { epoch } = await claimChunk(ledger, id, chunk);
    await ledger.update({ run: id, chunk, epoch, results: results(cell) });
    await ledger.returnChunk({ run: id, chunk, epoch, dueInMs: null });
  };
  return { id, look, goOn, settleChunk, results };
}

describe.concurrent('what is followed', () => {
  test('is each chunk once it is settled as a whole and returned, and no chunk twice', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished);
    expect(await run.look()).toEqual([]);
    const { epoch } = await claimChunk(ledger, run.id, 1);
    await ledger.update({ run: run.id, chunk: 1, epoch, results: [run.results(deleted)[0]!] });
    expect(await run.look()).toEqual([]);
    await ledger.update({ run: run.id, chunk: 1, epoch, results: [run.results(unknown)[1]!] });
    await ledger.returnChunk({ run: run.id, chunk: 1, epoch, dueInMs: null });
    expect(await run.look()).toEqual(['v-1-0 deleted', 'v-1-1 unknown']);
    await run.settleChunk(0);
    expect([await run.look(), await run.look()]).toEqual([['v-0-0 deleted', 'v-0-1 deleted'], []]);
    await run.settleChunk(2);
    expect(await run.look()).toEqual(['v-2-0 deleted', 'v-2-1 deleted']);
  });

  test('goes on behind any row', async ({ expect, onTestFinished }) => {
    for (const cutAt of [1, 2, 3, 4, 5]) {
      const run = await openRun(onTestFinished);
      for (const chunk of [2, 0, 1]) await run.settleChunk(chunk);
      const before = await run.look(cutAt);
      run.goOn();
      const all = [...before, ...(await run.look())];
      expect(all).toEqual([0, 1, 2].flatMap((n) => [`v-${n}-0 deleted`, `v-${n}-1 deleted`]));
    }
  });

  test('corrects an outcome that a former holder of the chunk knew better, once, also when it is cut there', async ({
    expect,
    onTestFinished,
  }) => {
    for (const cutAt of [0, 1, 2]) {
      const run = await openRun(onTestFinished);
      const former = await claimChunk(ledger, run.id, 0);
      await run.settleChunk(0, unknown);
      expect(await run.look()).toEqual(['v-0-0 unknown', 'v-0-1 unknown']);
      await ledger.update({ run: run.id, chunk: 0, epoch: former.epoch, results: run.results(deleted) });
      const before = cutAt === 0 ? [] : await run.look(cutAt);
      run.goOn();
      await run.settleChunk(1);
      const corrections = ['v-0-0 deleted!', 'v-0-1 deleted!'];
      expect([...before, ...(await run.look())]).toEqual([...corrections, 'v-1-0 deleted', 'v-1-1 deleted']);
      expect(await run.look()).toEqual([]);
    }
  });

  test('needs no correction for a chunk that is written later', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    const former = await claimChunk(ledger, run.id, 0);
    await run.settleChunk(0, unknown);
    await ledger.update({ run: run.id, chunk: 0, epoch: former.epoch, results: run.results(deleted) });
    expect(await run.look()).toEqual(['v-0-0 deleted', 'v-0-1 deleted']);
  });

  test('is all of a cancelled run, with what was not attempted', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    await run.settleChunk(1);
    expect(await run.look()).toEqual(['v-1-0 deleted', 'v-1-1 deleted']);
    await ledger.steer(run.id, Date.now(), { action: 'cancel', reason: '', by: 'operator', who: 'test' });
    const left = [0, 2].flatMap((n) => [`v-${n}-0 not_attempted`, `v-${n}-1 not_attempted`]);
    expect(await run.look()).toEqual(left);
  });

  test('waits for a chunk again whose outcomes Redis has lost, and writes the rest of it', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished, 4);
    const before = (await redis.getBuffer(keys.ledger(run.id, 0)))!;
    await run.settleChunk(0);
    await run.settleChunk(1);
    expect(await run.look(1)).toEqual(['v-0-0 deleted']);
    await redis.set(keys.ledger(run.id, 0), before);
    run.goOn();
    expect(await run.look()).toEqual([]);
    await redis.hset(keys.open(run.id), 0, 0);
    await run.settleChunk(0);
    expect(await run.look()).toEqual(['v-0-1 deleted', 'v-1-0 deleted', 'v-1-1 deleted']);
  });
});
