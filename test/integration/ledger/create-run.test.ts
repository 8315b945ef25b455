import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { claimList, findRunOfList, type RunPlan, writeRun } from '../../../src/ledger/create-run.ts';
import { readOutcomes } from '../../../src/ledger/outcome-rows.ts';
import { readRun, schemaVersion } from '../../../src/ledger/run.ts';
import { noRules } from '../../../src/ledger/run-rules.ts';
import { sentOutcomes } from '../../../src/model/outcome.ts';
import { resources } from '../../../src/model/resource.ts';
import type { Chunk, SettledBlock } from '../../../src/model/row.ts';
import { targetOf } from '../../../src/model/target.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { forgetRun } from './lone-run.ts';

let id: string;
const redis = await redisDuringTests();
beforeEach(() => {
  id = `test-${randomUUID()}`;
});
afterEach(() => forgetRun(redis, id));

/** Five rows in two chunks and a block: a-1, a-2 · a-3, a-4 · the duplicate of a-1 between them. */
type List = { plan: RunPlan; parts: (Chunk | SettledBlock)[] };

/** The list as it is read from one file, or with its last three rows in a second one. */
function listIn(...files: string[]): List {
  const at = (row: number) => (files.length === 1 || row < 2 ? { file: 0, line: row + 2 } : { file: 1, line: row });
  const chunk = (n: number, ids: string[], rows: number[]): Chunk => ({
    n,
    resource: 'annotations',
    ids,
    positions: rows.map(at),
  });
  const copy = { ...at(2), resource: 'annotations', id: 'a-1', outcome: 'duplicate', code: 'duplicate' } as const;
  const plan: RunPlan = {
    target: targetOf('http://127.0.0.1:9', id),
    list: id,
    sha256: id,
    files,
    layout: files.join('+'),
    rows: 5,
    ids: 4,
    chunks: 2,
    blocks: 1,
    settled: { rejected: 0, duplicate: 1, protected: 0 },
    ...noRules,
    protectedRead: null,
    canary: '',
    definitions: '',
    note: '',
    retryOf: '',
    keepMs: 60_000,
    detached: false,
    who: 'test',
    command: `run ${files.join(' ')}`,
  };
  const block: SettledBlock = { n: 0, rows: [{ ...copy, first: at(0) }] };
  return { plan, parts: [chunk(0, ['a-1', 'a-2'], [0, 1]), block, chunk(1, ['a-3', 'a-4'], [3, 4])] };
}

/** The same list, read by somebody else for another reason. */
function of(who: string, { plan, parts }: List): List {
  return { plan: { ...plan, who, note: `why ${who}` }, parts };
}

function write({ plan, parts }: List, feed: (parts: List['parts']) => AsyncIterable<Chunk | SettledBlock> = all) {
  return writeRun(redis, id, plan, feed(parts), Date.now(), () => {});
}

async function* all(parts: List['parts']): AsyncGenerator<Chunk | SettledBlock> {
  yield* parts;
}

// Workers of another version take this for the form they know, as long as the version is theirs.
test('a run is stored in the form of version 9: a change here needs a new schemaVersion', async () => {
  await write(listIn('one.csv'));
  const fields = Object.keys(await redis.hgetall(keys.run(id))).sort();
  expect({ schemaVersion, fields, outcomes: sentOutcomes, resources }).toEqual({
    schemaVersion: 9,
    fields: [
      ...[
        'acceptedAt',
        'account',
        'baseUrl',
        'blocks',
        'canary',
        'canaryOf',
        'chunks',
        'command',
        'createdAt',
        'createdBy',
        'detached',
      ],
      ...[
        'duplicate',
        'edits',
        'epoch',
        'expect',
        'expectAbsent',
        'files',
        'fp',
        'ids',
        'keepMs',
        'layout',
        'list',
        'maxDeletes',
        'maxFailures',
        'minGraceMs',
        'next',
        'note',
      ],
      ...[
        'onStatus',
        'protected',
        'protectedRead',
        'rate',
        'rejected',
        'retryOf',
        'rows',
        'schema',
        'sendable',
        'server',
      ],
      ...['serverDurable', 'serverHistory', 'settled', 'sha256', 'state', 'who', 'window'],
    ],
    outcomes: ['failed', 'unknown', 'absent', 'gone_unconfirmed', 'deleted'], // by rank
    resources: ['annotations', 'views'],
  });
});

/** Writes the first parts of a list and dies. */
async function dieAfter(count: number, list: List): Promise<void> {
  const dying = write(list, async function* (parts) {
    yield* parts.slice(0, count);
    throw new Error('killed');
  });
  await expect(dying).rejects.toThrow('killed');
}

/** A producer that stands still after its first parts, until it is told to go on. */
function stopAfter(count: number, list: List) {
  const gate = new EventEmitter();
  const reached = once(gate, 'reached');
  const ended = write(list, async function* (parts) {
    yield* parts.slice(0, count);
    gate.emit('reached');
    await once(gate, 'go on');
    yield* parts.slice(count);
  });
  ended.catch(() => {}); // heard by whoever lets it go on
  const proceed = () => {
    gate.emit('go on');
    return ended;
  };
  return { reached, proceed };
}

/** `file:line id` of each row of the report. */
async function report(): Promise<string[]> {
  const rows: string[] = [];
  for await (const page of readOutcomes(redis, (await readRun(redis, id))!)) {
    rows.push(...page.map((row) => `${row.file}:${row.line} ${row.id}${row.excerpt ? ` ${row.excerpt}` : ''}`));
  }
  return rows;
}

const inOneFile = ['one:2 a-1', 'one:3 a-2', 'one:4 a-1 first at one:2', 'one:5 a-3', 'one:6 a-4'];
const inTwoFiles = ['x:2 a-1', 'x:3 a-2', 'y:2 a-1 first at x:2', 'y:3 a-3', 'y:4 a-4'];

describe('the run of a list whose producer died while it was written', () => {
  test.each([0, 1, 2, 3])(
    'has one report, of the files it is read from then: %i parts written before',
    async (count) => {
      await dieAfter(count, listIn('x', 'y'));
      await write(listIn('one'));
      expect(await report()).toEqual(inOneFile);
      expect(await readRun(redis, id)).toMatchObject({ state: 'planned', command: 'run one' });
    },
  );

  test.each([
    ['the same file', 'one'],
    ['another file', 'other'],
  ])('is from then on a run of whoever writes it to the end, from %s', async (_, file) => {
    await dieAfter(1, of('schedule nightly on worker', listIn('one')));
    await write(of('ana', listIn(file)));
    const whose = { who: 'ana', createdBy: 'ana', note: 'why ana', command: `run ${file}` };
    expect(await readRun(redis, id)).toMatchObject({ state: 'planned', ...whose });
    await write(of('bob', listIn('one')));
    expect(await readRun(redis, id)).toMatchObject(whose);
  });

  test.each([0, 1, 2, 3])('the other way round: %i parts written before', async (count) => {
    await dieAfter(count, listIn('one'));
    await write(listIn('x', 'y'));
    expect(await report()).toEqual(inTwoFiles);
  });
});

describe('two producers of one list', () => {
  test('of the same files write it together', async () => {
    const first = stopAfter(1, listIn('one'));
    await first.reached;
    await write(listIn('one'));
    await first.proceed();
    expect(await report()).toEqual(inOneFile);
  });

  test('of other files: the later one writes it, and the other is told so', async () => {
    const first = stopAfter(1, listIn('x', 'y'));
    await first.reached;
    const second = stopAfter(2, listIn('one'));
    await second.reached;
    await expect(first.proceed()).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining(id) });
    expect((await readRun(redis, id))!.state).toBe('preparing');
    await second.proceed();
    expect(await report()).toEqual(inOneFile);
  });

  test('of other files: one that comes to its end after the other took over does not call the run planned', async () => {
    const first = stopAfter(3, listIn('x', 'y'));
    await first.reached;
    const second = stopAfter(1, listIn('one'));
    await second.reached;
    await expect(first.proceed()).rejects.toMatchObject({ code: 'USAGE' });
    expect((await readRun(redis, id))!.state).toBe('preparing');
    await second.proceed();
    expect(await report()).toEqual(inOneFile);
  });

  test('leave alone what is being deleted already', async () => {
    const late = stopAfter(1, listIn('one'));
    await late.reached;
    await write(listIn('one'));
    await redis.hset(keys.run(id), 'state', 'running');
    await redis.set(keys.ledger(id, 1), 'settled');
    await late.proceed();
    await write(listIn('x', 'y'));
    expect(await redis.get(keys.ledger(id, 1))).toBe('settled');
    expect((await readRun(redis, id))!.files).toEqual(['one']);
  });
});

test('a long list is written to its end, and its progress told', async () => {
  const { plan } = listIn('one');
  const chunk = (n: number): Chunk => ({
    n,
    resource: 'annotations',
    ids: [`a-${n}`],
    positions: [{ file: 0, line: n + 2 }],
  });
  const told: number[] = [];
  const long = { ...plan, rows: 40, ids: 40, chunks: 40, blocks: 0 };
  const parts = Array.from({ length: 40 }, (_, n) => chunk(n));
  await writeRun(redis, id, long, parts, Date.now(), (chunks) => told.push(chunks));
  expect(await report()).toEqual(parts.map(({ ids }, n) => `one:${n + 2} ${ids[0]}`));
  expect(told).toEqual([16, 32]);
});

test('a producer stops reading its list once another one has written the run', async () => {
  await write(listIn('one'));
  await redis.hset(keys.run(id), { state: 'preparing', layout: 'one' });
  let read = 0;
  const { plan, parts } = listIn('one');
  async function* endless() {
    for (; read < 100; read++) {
      if (read === 1) await redis.hset(keys.run(id), 'state', 'planned');
      yield parts[0]!;
    }
  }
  await writeRun(redis, id, plan, endless(), Date.now(), () => {});
  expect(read).toBeLessThan(40);
});

describe('the id of the run of a list', () => {
  const list = () => `list-${id}`;
  afterEach(() => redis.del(keys.list(list())));

  test('is that of whoever came first, also after it died, until its run is over', async () => {
    expect(await findRunOfList(redis, list())).toBeNull();
    const first = await claimList(redis, list(), Date.UTC(2026, 10, 20, 15, 49));
    expect(first).toMatch(/^20261120-1549-/);
    expect(await redis.get(keys.list(list()))).toBe(first);
    await redis.set(keys.list(list()), id);
    expect(await claimList(redis, list(), Date.now())).toBe(id);
    await write(listIn('one'));
    expect(await claimList(redis, list(), Date.now())).toBe(id);
    expect((await findRunOfList(redis, list()))!.id).toBe(id);
    await redis.hset(keys.run(id), { state: 'completed', delivered: 1 });
    const next = await claimList(redis, list(), Date.now());
    expect([next === id, await redis.get(keys.list(list()))]).toEqual([false, next]);
  });

  test('of a run that is over is replaced by one caller only', async () => {
    await write(listIn('one'));
    await redis.hset(keys.run(id), { state: 'completed', delivered: 1 });
    await redis.set(keys.list(list()), id);
    const claims = await Promise.all([1, 2, 3].map(() => claimList(redis, list(), Date.now())));
    expect(new Set(claims).size).toBe(1);
    expect(claims[0]).not.toBe(id);
  });

  test('of a run whose record has expired is replaced, because chunks of it may still be there', async () => {
    await redis.set(keys.list(list()), id);
    await redis.set(keys.ledger(id, 0), 'a part');
    expect(await claimList(redis, list(), Date.now())).not.toBe(id);
    await redis.del(keys.ledger(id, 0));
  });
});
