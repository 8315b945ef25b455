import { afterAll, beforeAll, describe, test } from 'vitest';
import { headerBytes, settle } from '../../../src/ledger/cell.ts';
import { haltExamples, haltExampleText, haltSelection } from '../../../src/ledger/halt-examples.ts';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import { noteDetail } from '../../../src/ledger/manifest.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { codeOfStatus, codeOfWord, type SentOutcome } from '../../../src/model/outcome.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { openTestRedis } from '../../support/redis.ts';
import { claimChunk, forgetRun, writeTestRun } from './lone-run.ts';

let redis: RedisClient;
let ledger: Ledger;
beforeAll(async () => {
  redis = await openTestRedis();
  ledger = openLedger(redis);
});
afterAll(() => {
  redis.disconnect();
});

type AtEnd = (task: () => Promise<void>) => void;

const chunkSize = 500;

/** A started run whose answers a test gives in order; two chunks are in two hands. */
async function openRun(atEnd: AtEnd, ids = 2_500) {
  const sizes = Array.from({ length: Math.ceil(ids / chunkSize) }, (_, n) => Math.min(chunkSize, ids - n * chunkSize));
  const id = await writeTestRun(redis, sizes);
  atEnd(() => forgetRun(redis, id));
  const start = () => ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
  await start();
  await ledger.enqueue(id);
  const claims = await Promise.all(sizes.slice(0, 4).map((_, n) => claimChunk(ledger, id, n)));
  const next = sizes.map(() => 0);
  /** `count` ids of a chunk end like this, in one update. */
  const answer = async (outcome: SentOutcome, code: number, count: number, chunk = 0) => {
    const cell = settle(outcome, 1, code);
    const from = next[chunk]!;
    next[chunk] = from + count;
    const results = Array.from({ length: count }, (_, i) => ({ index: from + i, cell }));
    const { epoch, known } = claims[chunk]!;
    return (
      await ledger.update({
        run: id,
        chunk,
        epoch,
        results,
        wanted: next[chunk]! < sizes[chunk]! ? [sizes[chunk]! - 1] : [],
        known,
      })
    ).state;
  };
  const record = async (): Promise<Run> => (await readRun(redis, id))!;
  return {
    id,
    start,
    record,
    answer,
    status: (status: number, ...rest: [number, number?]) => answer(outcomeOf(status), codeOfStatus(status), ...rest),
  };
}

function outcomeOf(status: number): SentOutcome {
  if (status === 204) return 'deleted';
  if (status === 404 || status === 410) return 'absent';
  return status < 400 || status === 406 || status >= 500 ? 'unknown' : 'failed';
}

const unexpected = [200, 201, 202, 203, 205, 226, 299, 300, 301, 304, 308, 399, 406];

describe.concurrent('a run', () => {
  test.for(unexpected)('is halted by the third %i', async (status, { expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    expect(await run.status(204, 100)).toBe('running');
    expect(await run.status(status, 2)).toBe('running');
    expect(await run.status(204, 100)).toBe('running');
    expect(await run.status(status, 1)).toBe('halted');
    const { reason, ...rest } = await run.record();
    expect(rest).toMatchObject({ state: 'halted', halt: 'unexpected_answers', by: 'guard' });
    expect(reason).toMatch(/^3 answers /);
  });

  /** @invariant halts-count-all: A halt rule counts over all processes. */
  test('is halted by what three holders saw together', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    expect(await run.status(200, 1, 0)).toBe('running');
    expect(await run.status(302, 1, 1)).toBe('running');
    expect(await run.status(200, 1, 2)).toBe('halted');
  });

  test('whose last answer would halt it has ended', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished, 3);
    expect(await run.status(302, 3)).toBe('completed');
    expect(await run.record()).toMatchObject({ halt: '', reason: '' });
  });

  test('is halted by nothing that an id may do by itself', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    await run.answer('failed', codeOfStatus(409), 100, 0);
    await run.answer('absent', codeOfStatus(404), 100, 1);
    await run.answer('unknown', codeOfWord('timeout'), 100, 1);
    await run.answer('gone_unconfirmed', codeOfStatus(404), 400, 2);
    expect(await run.answer('unknown', codeOfStatus(503), 400, 3)).toBe('running');
  });

  test('counts anew when it is started again, and the results of a halted run are merged', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished);
    expect(await run.status(200, 3)).toBe('halted');
    expect(await run.status(204, 20, 1)).toBe('halted');
    expect(await run.record()).toMatchObject({ settled: 23, counts: { unknown: 3, deleted: 20 } });
    await run.start();
    expect(await run.record()).toMatchObject({ state: 'running', halt: '', reason: '' });
    expect(await run.status(200, 2)).toBe('running');
    expect(await run.status(200, 1)).toBe('halted');
  });

  test('does not count twice what arrives twice', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    const { epoch } = await claimChunk(ledger, run.id, 0);
    const results = [0, 1].map((index) => ({ index, cell: settle('failed', 1, codeOfStatus(302)) }));
    for (let n = 0; n < 3; n++) await ledger.update({ run: run.id, chunk: 0, epoch, results });
    expect((await run.record()).state).toBe('running');
  });
});

describe.concurrent('the examples of a halt', () => {
  test('are the first ids, at most five, that its rule counts, chunk by chunk', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    const examples = async () => idsOf(await haltExamples(redis, await run.record()));
    await run.status(204, 2);
    await run.status(302, 1);
    await run.status(403, 1);
    await run.status(302, 1, 2);
    expect(await examples()).toEqual([]); // it runs
    expect(haltSelection(await run.record())).toBe('');
    expect(await run.status(200, 1, 1)).toBe('halted');
    expect(await examples()).toEqual(['v-0-2', 'v-1-0', 'v-2-0']);
    expect(haltSelection(await run.record())).toBe('failed,unknown');
    await run.status(302, 10, 1);
    expect(await examples()).toEqual(['v-0-2', 'v-1-0', 'v-1-1', 'v-1-2', 'v-1-3']);
    await redis.del(keys.manifest(run.id, 0));
    expect((await examples())[0]).toBe('v-1-0');
    await redis.del(keys.ledger(run.id, 1));
    expect(await examples()).toEqual(['v-2-0']);
  });

  test('are looked for in the last 20 chunks that were enqueued, then in the first 20', async ({
    expect,
    onTestFinished,
  }) => {
    const run = await openRun(onTestFinished, 45 * chunkSize);
    const unknown = ledgerChunk(settle('unknown', 1, codeOfStatus(200)));
    for (const n of [19, 20, 22, 23, 44]) await redis.set(keys.ledger(run.id, n), unknown);
    expect(await run.status(200, 3)).toBe('halted');
    const examplesUpTo = async (next: number) => idsOf(await haltExamples(redis, { ...(await run.record()), next }));
    expect(await examplesUpTo(19)).toEqual(['v-0-0', 'v-0-1', 'v-0-2']);
    expect(await examplesUpTo(43)).toEqual(['v-23-0', 'v-0-0', 'v-0-1', 'v-0-2', 'v-19-0']);
    expect(await examplesUpTo(45)).toEqual(['v-44-0', 'v-0-0', 'v-0-1', 'v-0-2', 'v-19-0']);
  });

  const byLimits = [
    ['--max-failures', { maxFailures: '1' }, 'max_failures'],
    ['--canary', { canary: '5:1' }, 'canary'],
  ] as const;
  test.for(byLimits)('by %s are ids that failed, with what was answered', async ([, brakes, halt], at) => {
    const { expect, onTestFinished } = at;
    const id = await writeTestRun(redis, [5, 5], null, null, brakes);
    onTestFinished(() => forgetRun(redis, id));
    await ledger.steer(id, Date.now(), { action: 'start', reason: '', by: 'operator', who: 'test' });
    await ledger.enqueue(id);
    const { epoch, known } = await claimChunk(ledger, id, 0);
    const cells = [
      settle('deleted', 1, codeOfStatus(204)),
      settle('failed', 1, codeOfStatus(409)),
      settle('unknown', 3, codeOfWord('timeout')),
      settle('absent', 1, codeOfStatus(404)),
      settle('deleted', 1, codeOfStatus(204)),
    ];
    await noteDetail(redis, id, { chunk: 0, index: 1, cell: cells[1]!, excerpt: '[q-7] it is locked' });
    const results = cells.map((cell, index) => ({ index, cell }));
    await ledger.update({ run: id, chunk: 0, epoch, results, known });
    await ledger.enqueue(id);
    const run = (await readRun(redis, id))!;
    expect(run).toMatchObject({ state: 'halted', halt });
    const examples = await haltExamples(redis, run);
    expect(examples).toEqual([
      { id: 'v-0-1', outcome: 'failed', code: 'http_409', excerpt: '[q-7] it is locked' },
      { id: 'v-0-2', outcome: 'unknown', code: 'timeout', excerpt: '' },
    ]);
    expect(examples.map(haltExampleText)).toEqual([
      'v-0-1: failed, http_409 "[q-7] it is locked"',
      'v-0-2: unknown, timeout',
    ]);
    expect(haltSelection(run)).toBe('failed,unknown');
  });

  test('are none where no id that has an outcome is behind the halt', async ({ expect, onTestFinished }) => {
    const run = await openRun(onTestFinished);
    await run.status(409, 2);
    await ledger.steer(run.id, Date.now(), { action: 'halt', reason: '', by: 'guard', who: '', halt: 'credentials' });
    expect(await haltExamples(redis, await run.record())).toEqual([]);
    expect(haltSelection(await run.record())).toBe('');
  });
});

function idsOf(examples: { id: string }[]): string[] {
  return examples.map(({ id }) => id);
}

/** A ledger chunk in which the first id ended like this. */
function ledgerChunk(cell: number): Buffer {
  const bytes = Buffer.alloc(headerBytes + 2 * chunkSize);
  bytes.writeUInt16BE(cell, headerBytes);
  return bytes;
}
