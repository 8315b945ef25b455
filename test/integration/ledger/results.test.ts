import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Cell, settle } from '../../../src/ledger/cell.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import {
  announceResults,
  dropUndelivered,
  isDeliveryEnabled,
  queueResults,
  readUndelivered,
  recordResults,
  recordResultsProblem,
  requestDelivery,
  requeueResults,
} from '../../../src/ledger/results.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { keys } from '../../../src/redis/keys.ts';
import { resultFiles } from '../../../src/report/result-files.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { expectKept } from '../../support/redis-keys.ts';
import { claimChunk, forgetRun, writeTestRun } from './lone-run.ts';

let id: string;
let fp: string;
const redis = await redisDuringTests();
beforeEach(() => {
  [id, fp] = [`test-${randomUUID()}`, `test-${randomUUID()}`];
});
afterEach(async () => {
  await redis.unlink(keys.run(id), keys.results(fp), keys.undelivered(fp), keys.resultsLease(id));
});

const day = 86_400_000;

/** A run with these fields, in Redis and as it is read. */
async function writeRecord(fields: Record<string, string | number>): Promise<Run> {
  await redis.hset(keys.run(id), { fp, keepMs: 60_000, ...fields });
  return (await readRun(redis, id))!;
}

describe('the results of a run', () => {
  test('are wanted for a day after a worker has announced them, of each run that is there then', async () => {
    expect(await isDeliveryEnabled(redis, fp)).toBe(false);
    await announceResults(redis, fp);
    expect(await isDeliveryEnabled(redis, fp)).toBe(true);
    await expectKept(redis, keys.results(fp), day);
    await requestDelivery(redis, id);
    expect(await readRun(redis, id)).toBeNull();
    await writeRecord({ state: 'running' });
    await requestDelivery(redis, id);
    expect((await readRun(redis, id))!.resultsWanted).toBe(true);
  });
});

describe('a run whose results are to be delivered', () => {
  test('waits in the order in which runs have ended, until it is taken out as it was read', async () => {
    const run = await writeRecord({ state: 'halted', changedAt: 5_000, resultsWanted: 1 });
    const other = { ...run, id: 'another', state: 'completed' as const, endedAt: 4_000 };
    await queueResults(redis, run);
    await queueResults(redis, other);
    const undelivered = await readUndelivered(redis, fp);
    expect(undelivered).toEqual([
      { run: 'another', since: 4_000 },
      { run: id, since: 5_000 },
    ]);
    await queueResults(redis, run, 6_000);
    for (const each of undelivered) await dropUndelivered(redis, fp, each);
    expect(await readUndelivered(redis, fp)).toEqual([{ run: id, since: 6_000 }]);
  });

  test('is in the list as long as its keys are there, and never shorter than another one', async () => {
    const run = await writeRecord({ state: 'completed', endedAt: 5_000, resultsWanted: 1 });
    await queueResults(redis, run);
    await expectKept(redis, keys.undelivered(fp), 31 * day);
    await queueResults(redis, { ...run, resultsOf: 'completed 5000' });
    await expectKept(redis, keys.undelivered(fp), 31 * day);
  });

  test('is delivered by whoever holds its lease: what became of it is on record', async () => {
    await writeRecord({ state: 'completed', endedAt: 7, resultsWanted: 1 });
    const done = { end: 'completed 7', at: 9, place: '/results', by: 'here' };
    expect(await recordResults(redis, id, 'mine', done)).toBe('lost');
    await redis.set(keys.resultsLease(id), 'mine');
    await recordResultsProblem(redis, id, 'mine', 'no room');
    await recordResultsProblem(redis, id, 'of another', 'nonsense');
    expect((await readRun(redis, id))!.resultsProblem).toBe('no room');
    expect(await recordResults(redis, id, 'of another', done)).toBe('lost');
    expect(await recordResults(redis, id, 'mine', done)).toBe('done');
    const { resultsOf, resultsAt, resultsIn, resultsBy, resultsProblem } = (await readRun(redis, id))!;
    expect({ resultsOf, resultsAt, resultsIn, resultsBy, resultsProblem }).toEqual({
      resultsOf: 'completed 7',
      resultsAt: 9,
      resultsIn: '/results',
      resultsBy: 'here',
      resultsProblem: '',
    });
    await redis.unlink(keys.run(id));
    expect(await recordResults(redis, id, 'mine', done)).toBe('lost');
    expect(await redis.exists(keys.run(id))).toBe(0);
  });

  test('is delivered once more where a process may have replaced what another one delivered', async () => {
    await writeRecord({ state: 'completed', endedAt: 7, resultsWanted: 1, resultsOf: 'completed 7' });
    await redis.set(keys.resultsLease(id), 'mine', 'PX', 60_000);
    await requeueResults(redis, id, 'mine');
    expect([await readUndelivered(redis, fp), await redis.get(keys.resultsLease(id))]).toEqual([[], 'mine']);
    await requeueResults(redis, id, 'of another');
    expect(await readUndelivered(redis, fp)).toMatchObject([{ run: id }]);
    expect((await readRun(redis, id))!.resultsOf).toBe('');
    expect(await redis.get(keys.resultsLease(id))).toBe('lost');
    expect(await redis.pttl(keys.resultsLease(id))).toBeGreaterThan(0);
    await redis.unlink(keys.resultsLease(id), keys.run(id));
    await requeueResults(redis, id, 'mine');
    expect(await redis.exists(keys.run(id), keys.resultsLease(id))).toBe(0);
  });
});

describe('the files of the results', () => {
  const textOf = async (name: string, run: Run) => {
    let text = '';
    for await (const part of resultFiles[name]!(redis, run)) text += part;
    return text;
  };

  /** A run of four ids, of which so many have these outcomes. */
  async function openRun(atEnd: (task: () => Promise<void>) => void, merged: Cell[]): Promise<Run> {
    const ledger = openLedger(redis);
    id = await writeTestRun(redis, [4]);
    const run = id;
    atEnd(() => forgetRun(redis, run));
    await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
    await ledger.enqueue(id);
    const { epoch } = await claimChunk(ledger, id, 0);
    const results = merged.map((cell, index) => ({ index, cell }));
    await ledger.update({ run: id, chunk: 0, epoch, results });
    return (await readRun(redis, id))!;
  }

  const deleted = settle('deleted', 1, codeOfStatus(204));
  const failed = settle('failed', 2, codeOfStatus(403));
  const idsAndOutcomes = (text: string) => text.split('\n').map((line) => line.split(',').slice(3, 7).join(','));

  test('have every row, those worth another run, a page, and a summary', async ({ onTestFinished }) => {
    const run = await openRun(onTestFinished, [deleted, failed, deleted]);
    expect(Object.keys(resultFiles)).toEqual(['outcomes.csv', 'failures.csv', 'report.html', 'summary.json']);
    const header = 'id,outcome,status,attempts';
    expect(idsAndOutcomes(await textOf('outcomes.csv', run))).toEqual([
      ...[header, 'v-0-0,deleted,204,1', 'v-0-1,failed,403,2', 'v-0-2,deleted,204,1', 'v-0-3,pending,,0', ''],
    ]);
    expect(idsAndOutcomes(await textOf('failures.csv', run))).toEqual([header, 'v-0-1,failed,403,2', '']);
    expect(await textOf('report.html', run)).toContain('<h3>failed · http_403 · 1</h3>');
    const text = await textOf('summary.json', run);
    expect(text.endsWith('}\n')).toBe(true);
    expect(JSON.parse(text)).toMatchObject({
      type: 'summary',
      run: id,
      state: 'running',
      rows: 4,
      deleted: 2,
      failed: 1,
      pending: 1,
      adds_up: true,
      problem: null,
      base_url: 'http://127.0.0.1:9',
      account: run.account,
      list: ['list'],
      sha256: id,
      note: '',
      submitted_by: 'test',
      submitted_at: new Date(run.createdAt).toISOString(),
      started_at: new Date(run.startedAt).toISOString(),
      ended_at: null,
    });
    expect(JSON.parse(text)).not.toHaveProperty('results');
    expect(JSON.parse(text)).not.toHaveProperty('results_problem');
  });

  test('name no failures where there are none, and say when the run has ended', async ({ onTestFinished }) => {
    const run = await openRun(onTestFinished, [deleted, deleted, deleted, deleted]);
    expect(run.state).toBe('completed');
    expect(idsAndOutcomes(await textOf('failures.csv', run))).toEqual(['id,outcome,status,attempts', '']);
    expect(JSON.parse(await textOf('summary.json', run))).toMatchObject({
      state: 'completed',
      adds_up: true,
      ended_at: new Date(run.endedAt).toISOString(),
    });
  });

  test('say that a run does not add up', async ({ onTestFinished }) => {
    const run = await openRun(onTestFinished, [deleted, deleted]);
    const { adds_up, problem } = JSON.parse(await textOf('summary.json', { ...run, rows: 5 }));
    expect([adds_up, problem]).toEqual([false, expect.stringContaining('5')]);
  });
});
