import { afterEach, beforeEach, expect, test } from 'vitest';
import { settle } from '../../../src/ledger/cell.ts';
import { openLedger } from '../../../src/ledger/ledger.ts';
import { noteRetry, omitRetriedRows, readRetried } from '../../../src/ledger/retries.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { worthRetry } from '../../../src/model/selection.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { claimChunk, forgetRun, writeTestRun } from './lone-run.ts';

let id: string;
const redis = await redisDuringTests();
const ledger = openLedger(redis);
beforeEach(async () => {
  id = await writeTestRun(redis, [3, 2]);
});
afterEach(() => forgetRun(redis, id));

const steer = (action: 'start' | 'cancel') =>
  ledger.steer(id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });
const record = async (): Promise<Run> => (await readRun(redis, id))!;

/** A run that was cancelled with one id deleted, one failed, one in flight and two that were never sent. */
async function cancelled(): Promise<void> {
  await steer('start');
  await ledger.enqueue(id);
  const { epoch } = await claimChunk(ledger, id, 0);
  const [deleted, failed] = [settle('deleted', 1, codeOfStatus(204)), settle('failed', 1, codeOfStatus(409))];
  await ledger.update({ run: id, chunk: 0, epoch, results: [{ index: 0, cell: deleted }, { index: 2, cell: failed }], wanted: [1] }); // biome-ignore format: one line
  await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0 });
  await steer('cancel');
}

async function retried(only: readonly string[]): Promise<[id: string, outcome: string][]> {
  const rows: [string, string][] = [];
  for await (const page of readRetried(redis, await record(), only))
    rows.push(...page.map((row): [string, string] => [row.id, row.outcome]));
  return rows;
}

test('the rows to retry are those at finalization that no request has settled for good', async () => {
  await cancelled();
  expect((await record()).state).toBe('cancelled');
  expect(await retried(worthRetry)).toEqual([
    ['v-0-1', 'unknown'],
    ['v-0-2', 'failed'],
    ['v-1-0', 'not_attempted'],
    ['v-1-1', 'not_attempted'],
  ]);
  expect(await retried(['http_409'])).toEqual([['v-0-2', 'failed']]);
  expect(await retried(['run_cancelled', 'http_204'])).toHaveLength(3);
  expect(await retried(['absent'])).toEqual([]);
});

test('a chunk is read only where it has a row to retry, and one that Redis has lost is an error', async () => {
  await cancelled();
  await redis.del(keys.manifest(id, 1));
  expect(await retried(['failed'])).toHaveLength(1);
  await expect(retried(['not_attempted'])).rejects.toThrow('manifest chunk 1 is missing in Redis');
  await redis.del(keys.ledger(id, 0));
  await expect(retried(['failed'])).rejects.toThrow('ledger chunk 0 is missing in Redis');
});

test('a run names the last hundred runs that retry it, each once', async () => {
  const entry = { at: 1, action: 'retry', by: 'operator', who: 'test', reason: '' } as const;
  for (let n = 0; n < 102; n++) await noteRetry(redis, id, `r${n}`, entry);
  await noteRetry(redis, id, 'r50', entry);
  const { retriedBy } = await record();
  expect([retriedBy.length, retriedBy[0], retriedBy.at(-1)]).toEqual([100, 'r2', 'r101']);
  await noteRetry(redis, 'test-gone', 'r1', entry);
  expect(await redis.exists(keys.run('test-gone'), keys.audit('test-gone'))).toBe(0);
});

test('rows that another run retries are left out, and no others, however both are cut into pages', async () => {
  await cancelled();
  const retry = await writeTestRun(redis, [3]); // its rows stand in the lines 1 to 3 of the same file
  const none = await writeTestRun(redis, []);
  const at = (line: number, file = 0) => ({ file, line });
  const left = async (retries: string[], pages: { file: number; line: number }[][]) => {
    async function* all() {
      yield* pages;
    }
    const runs = await Promise.all(retries.map(async (one) => (await readRun(redis, one))!));
    const kept: string[][] = [];
    for await (const page of omitRetriedRows(redis, runs, all()))
      kept.push(page.map(({ file, line }) => `${file}:${line}`));
    return kept;
  };
  const pages = [[at(0), at(1)], [at(3), at(4)], [], [at(1, 1), at(3, 1)]];
  expect(await left([retry], pages)).toEqual([['0:0'], ['0:4'], [], ['1:1', '1:3']]);
  expect(await left([none, retry], pages)).toEqual([['0:0'], ['0:4'], [], ['1:1', '1:3']]);
  expect(await left([none], pages)).toEqual([['0:0', '0:1'], ['0:3', '0:4'], [], ['1:1', '1:3']]);
  for (const one of [retry, none]) await forgetRun(redis, one);
});
