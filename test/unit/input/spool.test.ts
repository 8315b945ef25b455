import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { chunkSizes, countChunks, readChunks, readSpool } from '../../../src/input/chunk-ids.ts';
import { createSpoolFolder, removeSpool, removeStaleSpools, type Spool, spoolRows } from '../../../src/input/spool.ts';
import { writeRejects } from '../../../src/input/with-list.ts';
import { resources, sumIds } from '../../../src/model/resource.ts';
import { type Chunk, type Row, rejectCodes, rejectionReason, type SettledBlock } from '../../../src/model/row.ts';
import { sized } from '../../support/size.ts';

let stateDir = '';
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'expunge-'));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

const ofTwo = Array.from({ length: 10 }, () => 2);

type Extra = { protect?: string[]; limit?: number; batch?: number };

async function spool(rows: Row[], { protect, limit = Infinity, batch = 7 }: Extra = {}): Promise<Spool> {
  async function* batches() {
    for (let at = 0; at < rows.length; at += batch) yield rows.slice(at, at + batch);
  }
  async function* guarded() {
    yield protect ?? [];
  }
  const options = { files: ['a.csv', '=b.csv'], protectedIds: protect ? guarded() : null, limit };
  return spoolRows(batches(), await createSpoolFolder(stateDir), options);
}

/** Rows of annotations on lines from 1; a bang marks a rejected one, a v: a view. */
function rowsOf(...ids: string[]): Row[] {
  return ids.map((text, index) => ({
    file: 0,
    line: index + 1,
    resource: text.startsWith('v:') ? 'views' : 'annotations',
    id: text.replace(/^v:|!$/g, ''),
    reject: text.endsWith('!') ? 'unsafe_character' : null,
  }));
}

const isChunk = (block: Chunk | SettledBlock): block is Chunk => 'ids' in block;

function fates(of: Spool): string[] {
  return [...readSpool(of)].map(
    (row) => row.reject ?? (row.first ? `first on ${row.first.line}` : (row.settled ?? 'send')),
  );
}

test('refers duplicates to the first line; an annotation and a view of one id are two targets', async () => {
  const list = await spool(rowsOf('a', 'b', 'a', 'v:a', 'A', 'v:a', 'a'));
  expect(fates(list)).toEqual(['send', 'send', 'first on 1', 'send', 'send', 'first on 4', 'first on 1']);
  expect(list).toMatchObject({
    rows: 7,
    ids: { annotations: 3, views: 1 },
    duplicates: 3,
    rejected: 0,
    limited: false,
  });
});

// The hash of the rows names the list: with another place for one of them, the same list would be deleted as a second run.
test('gives a list the same name in every version: resources and reject codes keep their places, new ones are appended', async () => {
  expect(resources.slice(0, 2)).toEqual(['annotations', 'views']);
  expect(rejectCodes.slice(0, 16)).toEqual([
    ...['empty_id', 'dot_segment', 'lone_surrogate', 'control_character', 'unsafe_character', 'outer_white_space'],
    ...['too_long', 'spreadsheet_number', 'not_a_string', 'unsafe_number', 'missing_id', 'unknown_resource'],
    ...['path_not_stable', 'repeated_header', 'duplicate_key', 'placeholder'],
  ]);
  expect((await spool(rowsOf('a', 'v:a', 'b/c!'))).sha256).toBe(
    '0d7507284364c3c7b87b4c43ffee2366399a0d610e6fd6547f2a361670e3e030',
  );
});

test('does not count a rejected row as the first of its id', async () => {
  expect(fates(await spool(rowsOf('a!', 'a', 'a')))).toEqual(['unsafe_character', 'send', 'first on 2']);
});

test('lets protection win over duplication, for both resources', async () => {
  const list = await spool(rowsOf('a', 'b', 'a', 'v:a', 'a!'), { protect: ['a', 'z'] });
  expect(fates(list)).toEqual(['protected', 'send', 'protected', 'protected', 'unsafe_character']);
  expect(list).toMatchObject({ protected: 3, duplicates: 0, first: { id: 'b' }, last: { id: 'b' } });
});

test('counts the protected ids that were read, whether they match or not', async () => {
  expect(await spool(rowsOf('a', 'a'), { protect: ['a', 'y', 'z'] })).toMatchObject({
    protectedList: { ids: 3 },
    protected: 2,
  });
  expect(await spool(rowsOf('a'), { protect: ['z'] })).toMatchObject({ protectedList: { ids: 1 }, protected: 0 });
  expect(await spool(rowsOf('a'))).toMatchObject({ protectedList: null, protected: 0 });
});

test('takes only the first rows of a trial, and says that there were more', async () => {
  expect(await spool(rowsOf('a', 'b!', 'c'), { limit: 2 })).toMatchObject({ rows: 2, limited: true });
  expect(await spool(rowsOf('a', 'b!', 'c'), { limit: 3 })).toMatchObject({ rows: 3, limited: false });
  expect(await spool(rowsOf('a', 'b', 'c'), { limit: 1, batch: 1 })).toMatchObject({ rows: 1, limited: true });
});

test('makes nothing of nothing', async () => {
  const list = await spool([]);
  expect(list).toMatchObject({ rows: 0, ids: { annotations: 0, views: 0 }, first: null, last: null });
  expect([...readChunks(list)]).toEqual([]);
  expect(countChunks(list)).toEqual({ chunks: 0, blocks: 0, firstIds: [] });
});

const anyRow: fc.Arbitrary<Row> = fc.record({
  file: fc.nat(2),
  line: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  resource: fc.constantFrom('annotations' as const, 'views' as const),
  id: fc.oneof(
    fc.string({ minLength: 1, maxLength: 2, unit: fc.constantFrom('a', 'b', 'é', 'e\u0301', '👍') }),
    fc.uuid(),
  ),
  reject: fc.option(fc.constant('dot_segment' as const), { freq: 5 }),
});

/** What the rows should become, with nothing but a Map. */
function naive(rows: Row[], protect: string[]): unknown[] {
  const seen = new Map<string, Row>();
  return rows.map((row) => {
    if (row.reject !== null) return { ...row, settled: null, first: null };
    if (protect.includes(row.id)) return { ...row, settled: 'protected', first: null };
    const first = seen.get(row.resource + row.id);
    if (first) return { ...row, settled: 'duplicate', first: { file: first.file, line: first.line } };
    seen.set(row.resource + row.id, row);
    return { ...row, settled: null, first: null };
  });
}

test('settles any rows as a Map in memory would', async () => {
  const lists = fc.array(anyRow, { maxLength: 300 });
  const check = async (rows: Row[], protect: string[]) => {
    const list = await spool(rows, { protect });
    expect([...readSpool(list)]).toEqual(naive(rows, protect));
    const { ids, rejected, duplicates } = list;
    expect(sumIds(ids) + rejected + duplicates + list.protected).toBe(rows.length);
    await removeSpool(list.folder);
  };
  const property = fc.asyncProperty(lists, fc.subarray(['a', 'é', '👍']), check);
  await fc.assert(property, { numRuns: sized(8, 40) });
});

test('makes chunks of one resource in input order, and blocks of what is settled', async () => {
  const list = await spool(rowsOf('a', 'v:b', 'c', 'c', 'd', 'e', 'v:f', 'x!'));
  const blocks = [...readChunks(list, ofTwo)];
  expect(blocks.filter(isChunk).map(({ n, resource, ids }) => [n, resource, ...ids])).toEqual([
    [0, 'annotations', 'a', 'c'],
    [1, 'annotations', 'd', 'e'],
    [2, 'views', 'b', 'f'],
  ]);
  expect(blocks.filter((block) => !isChunk(block))).toEqual([
    {
      n: 0,
      rows: [
        {
          file: 0,
          line: 4,
          resource: 'annotations',
          id: 'c',
          outcome: 'duplicate',
          code: 'duplicate',
          first: { file: 0, line: 3 },
        },
        {
          file: 0,
          line: 8,
          resource: 'annotations',
          id: 'x',
          outcome: 'rejected',
          code: 'unsafe_character',
          first: null,
        },
      ],
    },
  ]);
  expect(countChunks(list, ofTwo)).toEqual({ chunks: 3, blocks: 1, firstIds: [2, 4, 6] });
});

test('makes chunks that end at the rungs of a canary, of whatever resource comes first', async () => {
  const list = await spool(rowsOf('a', 'v:b', 'c', 'd', 'v:e', 'v:f', 'g', 'h', 'i', 'j', 'k'));
  const first = chunkSizes([1, 4, 5]);
  expect(first).toEqual([1, 3, 1]);
  const chunks = [...readChunks(list, first)].filter(isChunk);
  expect(chunks.map(({ n, ids }) => [n, ...ids])).toEqual([
    [0, 'a'],
    [1, 'b', 'e', 'f'],
    [2, 'c'],
    [3, 'd', 'g', 'h', 'i', 'j', 'k'],
  ]);
  expect(countChunks(list, first)).toEqual({ chunks: 4, blocks: 0, firstIds: [1, 4, 5] });
  expect(chunkSizes([1, 1_200])).toEqual([1, 500, 500, 199]);
});

test('finds duplicates across chunk and file borders among many rows, and keeps every position', async () => {
  const count = sized(30_000, 300_000);
  const ids = Array.from({ length: count }, (_, n) => (n % 20 === 19 ? `id-${n - 19}` : `id-${n}`));
  const rows = ids.flatMap((id, index) => rowsOf(id).map((row) => ({ ...row, line: index + 1 })));
  const list = await spool(rows, { batch: 1000 });
  expect(list).toMatchObject({
    ids: { annotations: 0.95 * count },
    duplicates: 0.05 * count,
    first: { id: 'id-0' },
    last: { id: `id-${count - 2}` },
  });
  const blocks = [...readChunks(list)];
  const { chunks, blocks: settled } = countChunks(list);
  expect([blocks.filter(isChunk).length, blocks.length]).toEqual([chunks, chunks + settled]);
  const last = blocks.filter(isChunk).at(-1)!;
  expect(last.ids.map((id, index) => ids[last.positions[index]!.line - 1] === id)).not.toContain(false);
  expect(fates(list).at(-1)).toBe(`first on ${count - 19}`);
});

test('needs no more memory for a list of one id than for another, though all of it comes to one bucket', async () => {
  const rows = rowsOf(...Array.from({ length: 30_000 }, () => 'k'.repeat(1024))); // a bucket of 31 MB
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  });
  const list = await spool(rows, { protect: ['z'] }).finally(() => clearInterval(timer));
  expect(list).toMatchObject({ ids: { annotations: 1 }, duplicates: 29_999 });
  expect(most).toBeLessThan(15_000_000);
});

test('makes the same chunks and the same name of the same rows, however they arrive', async () => {
  const rows = rowsOf('a', 'b', 'a', 'x!', 'v:c');
  const [one, two] = [await spool(rows), await spool(rows, { batch: 1 })];
  expect(two.sha256).toBe(one.sha256);
  expect([...readChunks(two, ofTwo)]).toEqual([...readChunks(one, ofTwo)]);
});

test.each([
  ['another order', rowsOf('b', 'a'), {}],
  ['another resource', rowsOf('a', 'v:b'), {}],
  ['another rejection', rowsOf('a', 'b!'), {}],
  ['ids joined otherwise', rowsOf('ab', ''), {}],
  ['protection', rowsOf('a', 'b'), { protect: ['b'] }],
  ['a limit', rowsOf('a', 'b'), { limit: 1 }],
])('names a list otherwise for %s', async (_, rows, extra) => {
  expect((await spool(rows, extra)).sha256).not.toBe((await spool(rowsOf('a', 'b'))).sha256);
});

test('names the same list of ids alike whatever file and line they stand on', async () => {
  const moved = rowsOf('a', 'b').map((row) => ({ ...row, file: 1, line: row.line + 5 }));
  const [one, two] = [await spool(moved), await spool(rowsOf('a', 'b'))];
  expect(one.sha256).toBe(two.sha256);
  expect(one.layout).not.toBe(two.layout);
});

test('keeps a spool to its owner, and nothing but rows once it is settled', async () => {
  const list = await spool(rowsOf('a', 'b', 'a'), { protect: ['b'] });
  expect(statSync(list.folder).mode & 0o777).toBe(0o700);
  expect(readdirSync(list.folder).sort()).toEqual(['positions', 'rows', 'settled-0']);
  for (const name of readdirSync(list.folder)) expect(statSync(join(list.folder, name)).mode & 0o777).toBe(0o600);
});

test.runIf(process.platform === 'linux')('says which disk is full and how to go on', async () => {
  const folder = await createSpoolFolder(stateDir);
  symlinkSync('/dev/full', join(folder, 'rows'));
  async function* batches() {
    yield rowsOf('a');
  }
  const failure = spoolRows(batches(), folder, { files: ['a.csv'], protectedIds: null, limit: null });
  await expect(failure).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining(`${folder}: no space left`),
    next: expect.stringContaining('--state-dir'),
  });
});

test('removes the spools of processes that are gone, and no others', async () => {
  const mine = await createSpoolFolder(stateDir);
  const root = join(stateDir, 'spool');
  const names = {
    dead: `${hostname()}-4194305-aa`,
    before: `${hostname()}-${process.pid}-bb`,
    alive: `${hostname()}-1-cc`,
  };
  for (const name of [...Object.values(names), 'other-host-7-dd', 'other-host-7-ee']) mkdirSync(join(root, name));
  utimesSync(join(root, names.before), 1, 1); // a process with our id, in the container before this one
  utimesSync(join(root, 'other-host-7-ee'), 1, 1);
  expect(await removeStaleSpools(stateDir)).toBe(3);
  expect(readdirSync(root).sort()).toEqual([mine.slice(root.length + 1), names.alive, 'other-host-7-dd'].sort());
  expect(await removeStaleSpools(join(stateDir, 'nothing'))).toBe(0);
});

test('lists rejected rows in a file that a spreadsheet can open', async () => {
  const rows = rowsOf('fine', '=1+1!', '-x!', 'a,"b!');
  const list = await spool(rows.map((row, index) => ({ ...row, file: index === 3 ? 1 : 0 })));
  const path = join(stateDir, 'rejects.csv');
  await writeRejects(list, path);
  const why = rejectionReason('unsafe_character');
  expect(readFileSync(path, 'utf8').split('\n')).toEqual([
    'file,line,id_safe,code,reason',
    `a.csv,2,'=1+1,unsafe_character,${why}`,
    `a.csv,3,'-x,unsafe_character,${why}`,
    `'=b.csv,4,"a,""b",unsafe_character,${why}`,
    '',
  ]);
  expect(list.rejectedByCode).toEqual({ unsafe_character: 3 });
});

test('keeps 200 characters of a rejected id and never half of one', async () => {
  const list = await spool(rowsOf(`${'x'.repeat(199)}👍!`));
  expect([...readSpool(list)][0]!.id).toBe('x'.repeat(199));
});
