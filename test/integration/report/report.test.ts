import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ReportDeps, reportRun } from '../../../src/commands/evidence/report.ts';
import { loadConfig } from '../../../src/config/read-config.ts';
import { toInputOptions } from '../../../src/input/input-options.ts';
import { openInputs } from '../../../src/input/open-inputs.ts';
import { readRows } from '../../../src/input/read-rows.ts';
import { headerBytes, mark, settle } from '../../../src/ledger/cell.ts';
import { noteDetail, writePart } from '../../../src/ledger/manifest.ts';
import { type OutcomeRow, readOutcomes } from '../../../src/ledger/outcome-rows.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { checkConservation, finalizeTally, tallyLedger } from '../../../src/ledger/tally.ts';
import { codeOfStatus, codeOfWord } from '../../../src/model/outcome.ts';
import type { Row, SettledBlock } from '../../../src/model/row.ts';
import { localRecords } from '../../../src/operations/local-records.ts';
import type { EarlySession } from '../../../src/operations/session.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { keys } from '../../../src/redis/keys.ts';
import { writeRunFiles } from '../../../src/report/run-files.ts';
import { openTestRedis } from '../../support/redis.ts';

let redis: RedisClient;
let id: string;
let folder: string;

beforeAll(async () => {
  redis = await openTestRedis();
});
afterAll(() => {
  redis.disconnect();
});
beforeEach(async () => {
  id = `test-${randomUUID()}`;
  folder = await mkdtemp(join(tmpdir(), 'expunge-report-'));
});
afterEach(async () => {
  const parts = [0, 1, 2].flatMap((n) => [keys.manifest(id, n), keys.ledger(id, n), keys.settled(id, n)]);
  await redis.del(keys.run(id), keys.details(id), ...parts);
  await rm(folder, { recursive: true });
});

const endedAt = Date.UTC(2026, 10, 20, 15, 49);
const hostile = '=cmd|"a", b';
const refused = settle('failed', 1, codeOfStatus(403));
const timedOut = settle('unknown', 8, codeOfWord('timeout'));

/** The cells of the two chunks below, and the counters that go with them. */
const settledCells = {
  cells: [[settle('absent', 2, codeOfStatus(404))], [settle('deleted', 1, codeOfStatus(204)), refused, timedOut]],
  counts: { state: 'completed', settled: 4, deleted: 1, failed: 1, unknown: 1, absent: 1, attempts: 12 },
};
const openCells = {
  cells: [[0], [settle('deleted', 1, codeOfStatus(204)), mark(0), 0]],
  counts: { state: 'cancelled', settled: 1, deleted: 1, attempts: 1 },
};

/**
 * Six rows in two files. Chunks get their number when they are full, so the one of annotations comes second although it
 * begins first.
 */
async function makeRun({
  cells,
  counts,
}: {
  cells: number[][];
  counts: Record<string, string | number>;
}): Promise<Run> {
  const at = (file: number, line: number) => ({ file, line });
  await redis.hset(keys.run(id), { state: 'preparing', layout: 'l' });
  await writePart(redis, id, 'l', {
    n: 1,
    resource: 'annotations',
    ids: ['a-1', hostile, 'a-3'],
    positions: [at(0, 2), at(1, 2), at(1, 3)],
  });
  await writePart(redis, id, 'l', { n: 0, resource: 'views', ids: ['v-1'], positions: [at(0, 3)] });
  const settled: SettledBlock = { n: 0, rows: [] };
  const copy = { ...at(0, 4), resource: 'views', id: 'v-1', outcome: 'duplicate', code: 'duplicate' } as const;
  const bad = { ...at(1, 4), resource: null, id: 'a-9', outcome: 'rejected', code: 'unknown_resource' } as const;
  settled.rows.push({ ...copy, first: at(0, 3) }, { ...bad, first: null });
  await writePart(redis, id, 'l', settled);
  for (const [n, chunk] of cells.entries()) await writeCells(n, chunk);
  await noteDetail(redis, id, { chunk: 1, index: 1, cell: cells[1]![1]!, excerpt: '@owner, not you' });
  const sizes = { rows: 6, ids: 4, chunks: 2, blocks: 1, duplicate: 1, rejected: 1 };
  await redis.hset(keys.run(id), { files: JSON.stringify(['one.csv', '=two.csv']), ...sizes, ...counts });
  return (await readRun(redis, id))!;
}

async function writeCells(n: number, cells: number[]): Promise<void> {
  const bytes = Buffer.alloc(headerBytes + 2 * cells.length);
  for (let at = 6; at < headerBytes; at += 4) bytes.writeUInt32BE(endedAt / 1_000, at);
  for (const [i, cell] of cells.entries()) bytes.writeUInt16BE(cell, headerBytes + 2 * i);
  await redis.set(keys.ledger(id, n), bytes);
}

async function allRows(run: Run): Promise<OutcomeRow[]> {
  const rows: OutcomeRow[] = [];
  for await (const page of readOutcomes(redis, run)) rows.push(...page);
  return rows;
}

async function report(run: Run, deps: Partial<ReportDeps>): Promise<{ exit: number; said: string[] }> {
  const said: string[] = [];
  const say = (line: string) => said.push(line);
  const style = { format: 'csv', spreadsheetSafe: false } as const;
  const usual = { ...style, output: null, only: null, join: null, verify: false, out: new PassThrough() };
  const records = localRecords({ redis, address: { label: '' } } as unknown as EarlySession);
  return { exit: await reportRun({ records, run, standings: [], say, print() {}, ...usual, ...deps }), said };
}

async function readAsInput(path: string): Promise<Row[]> {
  const options = toInputOptions({
    ...loadConfig({ flags: {}, env: {}, configFile: null }).config,
    resourceColumn: 'resource',
    allowIdChars: ',',
  });
  const rows: Row[] = [];
  for await (const batch of readRows(await openInputs([path], process.stdin), options)) rows.push(...batch);
  return rows;
}

const expectedCsv = [
  'file,line,resource,id,outcome,status,attempts,settled_at,code,excerpt',
  'one.csv,2,annotations,a-1,deleted,204,1,2026-11-20T15:49:00Z,http_204,',
  'one.csv,3,views,v-1,absent,404,2,2026-11-20T15:49:00Z,http_404,',
  'one.csv,4,views,v-1,duplicate,,0,,duplicate,first at one.csv:3',
  `'=two.csv,2,annotations,"=cmd|""a"", b",failed,403,1,2026-11-20T15:49:00Z,http_403,"'@owner, not you"`,
  `'=two.csv,3,annotations,a-3,unknown,,8,2026-11-20T15:49:00Z,timeout,`,
  `'=two.csv,4,,a-9,rejected,,0,,unknown_resource,`,
  '',
].join('\n');

describe('a report', () => {
  test('lists every row in input order, across chunks, resources, files and settled rows', async () => {
    const path = join(folder, 'report.csv');
    const { exit, said } = await report(await makeRun(settledCells), { output: path });
    expect(await readFile(path, 'utf8')).toBe(expectedCsv);
    expect({ exit, said }).toEqual({ exit: 0, said: [`6 rows in ${path}`] });
  });

  test.each(['csv', 'ndjson'] as const)('as %s is input again, with the same ids', async (format) => {
    const path = join(folder, `report.${format}`);
    await report(await makeRun(settledCells), { output: path, format });
    const rows = await readAsInput(path);
    expect(rows.map((row) => row.id)).toEqual(['a-1', 'v-1', 'v-1', hostile, 'a-3', 'a-9']);
    expect(rows.map((row) => row.resource)).toEqual([
      'annotations',
      'views',
      'views',
      'annotations',
      'annotations',
      null,
    ]);
  });

  test('that is safe for spreadsheets is refused as input', async () => {
    const path = join(folder, 'report.csv');
    await report(await makeRun(settledCells), { output: path, spreadsheetSafe: true });
    await expect(readAsInput(path)).rejects.toThrow('no column "id"');
  });

  test('replaces its file only when it is complete, and only its owner can read it', async () => {
    const path = join(folder, 'report.csv');
    await writeFile(path, 'old');
    const run = await makeRun(settledCells);
    await redis.del(keys.settled(id, 0));
    await expect(report(run, { output: path })).rejects.toThrow('block 0 of settled rows is missing in Redis');
    expect(await readFile(path, 'utf8')).toBe('old');
    await report(await makeRun(settledCells), { output: path });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['report.csv']);
  });

  test('that cannot be written says where, why and what to do, and leaves nothing behind', async () => {
    const run = await makeRun(settledCells);
    const message = `the report could not be written to ${folder}: it is a folder; the run's outcomes are safe in Redis`;
    const next = `expunge report ${id} --output ELSEWHERE`;
    await expect(report(run, { output: folder })).rejects.toMatchObject({ code: 'USAGE', message, next });
    expect((await readdir(join(folder, '..'))).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  test('of chosen rows has exactly those, by outcome or code, and is a list again', async () => {
    const path = join(folder, 'some.csv');
    const run = await makeRun(settledCells);
    expect((await report(run, { output: path, only: ['http_403', 'rejected', 'timeout'] })).said).toEqual([
      `3 rows in ${path}`,
    ]);
    const wanted = expectedCsv.split('\n').filter((line) => /^file|,failed,|,unknown,|,rejected,/.test(line));
    expect(await readFile(path, 'utf8')).toBe(`${wanted.join('\n')}\n`);
    expect((await readAsInput(path)).map(({ resource, id, reject }) => [resource, id, reject])).toEqual([
      ['annotations', hostile, null],
      ['annotations', 'a-3', null],
      [null, 'a-9', 'unknown_resource'],
    ]);
  });

  test('of chosen rows is not the report that was delivered, as it lacks the others', async () => {
    const run = await makeRun(settledCells);
    await report(run, { output: join(folder, 'some.csv'), only: ['failed'] });
    expect(await readRun(redis, id)).toMatchObject({ delivered: 0, reportIn: '' });
    await report(run, { output: join(folder, 'all.csv') });
    expect(await readRun(redis, id)).toMatchObject({ reportIn: join(folder, 'all.csv') });
  });

  test('of rows that nobody has is only its header', async () => {
    const out = new PassThrough();
    await report(await makeRun(settledCells), { out, only: ['not_attempted'] });
    expect(String(out.read())).toBe(expectedCsv.slice(0, expectedCsv.indexOf('\n') + 1));
  });

  test('of chosen rows of a live run has those that wait, too', async () => {
    const out = new PassThrough();
    await report(await makeRun({ ...openCells, counts: { state: 'running' } }), {
      out,
      format: 'ndjson',
      only: ['pending'],
    });
    const rows = String(out.read()).trimEnd().split('\n');
    expect(rows.map((line) => JSON.parse(line).id)).toEqual(['v-1', hostile, 'a-3']);
  });

  test('of chosen rows cannot be verified: the others would be missing', async () => {
    const both = report(await makeRun(settledCells), { verify: true, only: ['failed'] });
    await expect(both).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining('--only') });
  });

  test('leaves the drafts of other reports alone', async () => {
    const drafts = ['.other.csv.gone-1-0123456789ab.part', '.report.csv.notes'];
    for (const name of drafts) await writeFile(join(folder, name), 'mine');
    await report(await makeRun(settledCells), { output: join(folder, 'report.csv') });
    expect((await readdir(folder)).sort()).toEqual([...drafts, 'report.csv'].sort());
  });

  test('in a folder that does not exist says so', async () => {
    const output = join(folder, 'none', 'report.csv');
    await expect(report(await makeRun(settledCells), { output })).rejects.toThrow('its folder does not exist');
    await writeFile(join(folder, 'file'), '');
    const inFile = report(await makeRun(settledCells), { output: join(folder, 'file', 'report.csv') });
    await expect(inFile).rejects.toThrow('its folder does not exist');
  });

  test('is written into a pipe, which stays one', async () => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const pipe = await open(path, constants.O_RDWR | constants.O_NONBLOCK);
    await report(await makeRun(settledCells), { output: path });
    const { buffer, bytesRead } = await pipe.read();
    await pipe.close();
    expect(buffer.toString('utf8', 0, bytesRead)).toBe(expectedCsv);
    expect((await stat(path)).isFIFO()).toBe(true);
    expect(await readdir(folder)).toEqual(['pipe']);
  });

  test('whose output cannot be written says that it is not whole, why, and what to do', async () => {
    const out = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' })),
    });
    await expect(report(await makeRun(settledCells), { out })).rejects.toMatchObject({
      code: 'INTERNAL',
      message: expect.stringMatching(
        /^the report could not be written to stdout, which holds a part of it: no space left/,
      ),
      next: `expunge report ${id} --output ELSEWHERE`,
    });
  });

  test('whose reader goes away ends without an error', async () => {
    const out = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
    });
    expect((await report(await makeRun(settledCells), { out })).exit).toBe(0);
  });
});

describe('the error answer of a server', () => {
  const details = () => redis.hgetall(keys.details(id));
  const note = (index: number, cell: number, excerpt: string) =>
    noteDetail(redis, id, { chunk: 2, index, cell, excerpt });

  test('is kept where an id failed or is unknown and the server said something', async () => {
    await note(0, refused, '');
    await note(1, settle('deleted', 1, codeOfStatus(204)), 'gone');
    expect(await details()).toEqual({});
    await note(2, refused, 'not you');
    expect(await details()).toEqual({ '2.2': 'not you', 'count:http_403': '1' });
  });

  test('is kept for a thousand ids of each code', async () => {
    await redis.hset(keys.details(id), 'count:http_403', 999);
    for (const index of [0, 1]) await note(index, refused, 'not you');
    await note(2, timedOut, 'other');
    expect(Object.keys(await details()).filter((field) => /^2/.test(field))).toEqual(['2.0', '2.2']);
  });
});

describe('the files of a run', () => {
  test('are all outcomes and, apart, those worth another run, with their reasons in groups', async () => {
    const run = await makeRun(settledCells);
    const files = await writeRunFiles(redis, run, join(folder, 'runs', id));
    expect(await readFile(files.outcomes.path, 'utf8')).toBe(expectedCsv);
    expect((await readAsInput(files.failures!.path)).map((row) => row.id)).toEqual([hostile, 'a-3']);
    expect([files.outcomes.rows, files.failures!.rows]).toEqual([6, 2]);
    expect((await stat(join(folder, 'runs', id))).mode & 0o777).toBe(0o700);
    expect(files.groups).toEqual([
      { outcome: 'failed', code: 'http_403', count: 1, samples: [hostile] },
      { outcome: 'unknown', code: 'timeout', count: 1, samples: ['a-3'] },
      { outcome: 'rejected', code: 'unknown_resource', count: 1, samples: ['a-9'] },
    ]);
  });

  test('hold no list of failures once there are none, also not an old one', async () => {
    await writeRunFiles(redis, await makeRun(settledCells), folder);
    const gone = settle('deleted', 2, codeOfStatus(204));
    const run = await makeRun({ ...settledCells, cells: [[gone], [gone, gone, gone]] });
    expect((await writeRunFiles(redis, run, folder)).failures).toBeNull();
    expect((await readdir(folder)).sort()).toEqual(['audit.ndjson', 'kept-until', 'outcomes.csv', 'report.html']);
  });
});

describe('a tally', () => {
  test('counts each reason of a failure, the most frequent first, and every attempt', async () => {
    const cells = [[refused], [refused, timedOut, refused]];
    const sizes = { state: 'completed', settled: 4, failed: 3, unknown: 1, attempts: 11 };
    const { attempts, badCodes } = await tallyLedger(redis, await makeRun({ cells, counts: sizes }));
    expect(attempts).toBe(11);
    expect(badCodes).toEqual([
      { outcome: 'failed', code: 'http_403', count: 3 },
      { outcome: 'unknown', code: 'timeout', count: 1 },
    ]);
    const rare = await tallyLedger(
      redis,
      await makeRun({ ...settledCells, cells: [[timedOut], [refused, timedOut, timedOut]] }),
    );
    expect(rare.badCodes.map(({ code }) => code)).toEqual(['timeout', 'http_403']);
  });

  test('names what Redis has lost, at most ten parts', async () => {
    const run = await makeRun(settledCells);
    await redis.del(keys.manifest(id, 0), keys.ledger(id, 1), keys.settled(id, 0));
    const lost = ['manifest chunk 0 is missing', 'ledger chunk 1 is missing', 'block 0 of settled rows is missing'];
    expect((await tallyLedger(redis, run)).broken).toEqual(lost);
    const longer = { ...run, rows: 60, chunks: 30 };
    const found = (await tallyLedger(redis, longer)).broken;
    expect(found).toEqual([...lost.slice(0, 2), ...[2, 3, 4, 5].flatMap(missing)]);
  });

  const missing = (n: number) => [`manifest chunk ${n} is missing`, `ledger chunk ${n} is missing`];

  test('of a run that is no longer in Redis is an error', async () => {
    const run = await makeRun(openCells);
    await redis.del(keys.run(id));
    await expect(finalizeTally(redis, { ...run, tallied: true })).rejects.toMatchObject({
      code: 'INTERNAL',
      message: `run ${id} is no longer in Redis`,
    });
  });

  test('counts every row where it is stored', async () => {
    const run = await makeRun(settledCells);
    const tally = await tallyLedger(redis, run);
    expect(tally).toMatchObject({ pending: 0, attempts: 12, broken: [] });
    expect(tally.counts).toEqual(run.counts);
    expect(tally.badCodes).toEqual([
      { outcome: 'failed', code: 'http_403', count: 1 },
      { outcome: 'unknown', code: 'timeout', count: 1 },
    ]);
  });

  test('of a cancelled run settles its open cells in the counters, and repeating it changes nothing', async () => {
    const finalized = await finalizeTally(redis, await makeRun(openCells));
    expect(finalized.counts).toMatchObject({ deleted: 1, unknown: 1, not_attempted: 2, failed: 0 });
    expect(finalized.tallied).toBe(true);
    expect(await finalizeTally(redis, finalized)).toEqual(finalized);
    expect(await finalizeTally(redis, { ...finalized, tallied: false })).toEqual(finalized);
    expect(checkConservation(finalized, await tallyLedger(redis, finalized))).toBeNull();
    expect((await allRows(finalized)).map((row) => row.outcome)).not.toContain('pending');
  });

  test('of a live run leaves its counters alone and calls open ids pending', async () => {
    const run = await makeRun({ ...openCells, counts: { ...openCells.counts, state: 'running' } });
    expect(await tallyLedger(redis, run)).toMatchObject({ pending: 3, attempts: 1 });
    expect(await finalizeTally(redis, run)).toEqual(run);
  });

  test.each([
    ['missing', null, 'ledger chunk 1 is missing'],
    ['short', Buffer.alloc(8), `ledger chunk 1 has 8 bytes instead of ${headerBytes + 6} for its 3 ids`],
  ])('names a ledger chunk that is %s, and finalizes nothing', async (_, bytes, words) => {
    const run = await makeRun(openCells);
    if (bytes) await redis.set(keys.ledger(id, 1), bytes);
    else await redis.del(keys.ledger(id, 1));
    expect((await tallyLedger(redis, run)).broken).toEqual([words]);
    expect((await finalizeTally(redis, run)).tallied).toBe(false);
    await expect(allRows(run)).rejects.toThrow('ledger chunk 1');
    expect(await report(run, { verify: true })).toEqual({ exit: 1, said: [`does not add up: ${words}`] });
  });
});

describe('--verify', () => {
  test('says the sum when it adds up', async () => {
    const sum = '6 rows = 1 deleted + 1 absent + 1 failed + 1 unknown + 1 rejected + 1 duplicate';
    expect(await report(await makeRun(settledCells), { verify: true })).toEqual({ exit: 0, said: [`adds up: ${sum}`] });
  });

  test('says which counter the ledger contradicts', async () => {
    const run = await makeRun({ ...settledCells, counts: { ...settledCells.counts, deleted: 2 } });
    const words = 'does not add up: deleted: 2 counted, 1 in the ledger';
    expect(await report(run, { verify: true })).toEqual({ exit: 1, said: [words] });
  });
});
