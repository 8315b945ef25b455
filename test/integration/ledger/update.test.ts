import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  type Cell,
  decodeLedgerChunk,
  hasManyMarks,
  headerBytes,
  isDoubtful,
  isSettled,
  mark,
  readCell,
  readSettledAt,
  resetMarks,
  settle,
  unmark,
  untouched,
} from '../../../src/ledger/cell.ts';
import { KnownCells } from '../../../src/ledger/known-cells.ts';
import { type Ledger, openLedger } from '../../../src/ledger/ledger.ts';
import { readOutcomes } from '../../../src/ledger/outcome-rows.ts';
import { type Run, readRun } from '../../../src/ledger/run.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { keys } from '../../../src/redis/keys.ts';
import { redisDuringTests } from '../../support/redis.ts';
import { claimChunk, forgetRun, readCells, writeTestRun } from './lone-run.ts';

let id: string;
const redis = await redisDuringTests();
const ledger = openLedger(redis, () => now);
afterEach(() => forgetRun(redis, id));

const deleted = settle('deleted', 1, codeOfStatus(204));
const deletedAtLast = settle('deleted', 4, codeOfStatus(204));
const absent = settle('absent', 1, codeOfStatus(404));
let now = Date.now();

async function startRun(sizes: number[], rate: number | null = null): Promise<void> {
  id = await writeTestRun(redis, sizes, rate);
  await steer('start');
  await ledger.enqueue(id);
}

function steer(action: 'start' | 'pause' | 'halt' | 'cancel') {
  return ledger.steer(id, Date.now(), { action, reason: '', by: 'operator', who: 'test' });
}

const claim = (chunk = 0) => claimChunk(ledger, id, chunk);
const cells = (chunk = 0) => readCells(redis, id, chunk);

type Update = Omit<Parameters<Ledger['update']>[0], 'run' | 'chunk' | 'epoch'>;
const update = (epoch: number, wish: Update) => ledger.update({ run: id, chunk: 0, epoch, ...wish });

async function writeCells(all: Cell[]): Promise<void> {
  await redis.setrange(keys.ledger(id, 0), headerBytes, Buffer.from(all.flatMap((cell) => [cell >> 8, cell & 255])));
}

/** A time to the second, rounded up, that is none before the other one. */
function expectSince(before: number, at: number): void {
  expect(at).toBeGreaterThanOrEqual(before);
  expect(at).toBeLessThanOrEqual(Date.now() + 1_000);
}

async function record(): Promise<Run> {
  return (await readRun(redis, id))!;
}

test('a claim says whether the chunk was taken over, and an update which ids had an outcome before', async () => {
  await startRun([3]);
  const former = await claim();
  expect(former.isTakeover).toBe(false);
  const next = await claim();
  expect(next.isTakeover).toBe(true);
  const results = [0, 1].map((index) => ({ index, cell: deleted }));
  expect((await update(former.epoch, { results: results.slice(1) })).settledBefore).toBeUndefined();
  expect((await update(next.epoch, { results })).settledBefore).toEqual(new Set([1]));
  await ledger.returnChunk({ run: id, chunk: 0, epoch: next.epoch, dueInMs: 0 });
  await ledger.enqueue(id);
  expect((await claim()).isTakeover).toBe(false);
});

describe('an update of a holder that knows every cell', () => {
  const counters = async () => {
    const { counts, settled, attempts, state } = await record();
    return { deleted: counts.deleted, settled, attempts, state };
  };

  test('marks and merges as the merge script does', async () => {
    const before = Date.now();
    await startRun([12, 1]);
    const { epoch, known } = await claim();
    const merges = vi.spyOn(redis as unknown as { expungeUpdateBuffer(): unknown }, 'expungeUpdateBuffer');
    const marked = await update(epoch, { wanted: [0, 11], known });
    expect(marked).toMatchObject({ state: 'running', cells: [mark(untouched), mark(untouched)] });
    const back = unmark(mark(untouched), 1, true);
    const results = [
      { index: 0, cell: deleted },
      { index: 11, cell: back },
    ];
    expect(await update(epoch, { results, wanted: [3, 11], known })).toMatchObject({
      state: 'running',
      cells: [mark(untouched), mark(back)],
    });
    expect((await cells()).filter((cell) => cell !== untouched)).toEqual([deleted, mark(untouched), mark(back)]);
    await update(epoch, { results: [{ index: 11, cell: deletedAtLast }], known });
    expect(merges).not.toHaveBeenCalled();
    merges.mockRestore();
    expect(await counters()).toEqual({ deleted: 2, settled: 2, attempts: 5, state: 'running' });
    const bytes = await redis.getBuffer(keys.ledger(id, 0));
    for (const index of [0, 11]) expectSince(before, readSettledAt(decodeLedgerChunk(bytes!), index));
  });

  test('returns the chunk with its last id; repeated without an answer it changes nothing', async () => {
    await startRun([2, 1]);
    const { epoch, known } = await claim();
    await update(epoch, { wanted: [0, 1], known });
    const results = [0, 1].map((index) => ({ index, cell: deleted }));
    expect(await update(epoch, { results, known, isLast: true })).toMatchObject({ isReturned: true });
    expect(await redis.hkeys(keys.open(id))).toEqual(['1']);
    expect(await redis.exists(keys.deferred(id))).toBe(0);
    expect(await update(epoch, { results, isLast: true })).toMatchObject({ state: 'stale', cells: [] });
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: null })).toBe('stale');
    expect(await counters()).toEqual({ deleted: 2, settled: 2, attempts: 2, state: 'running' });
    expect(await cells()).toEqual([deleted, deleted]);
  });

  test('keeps the chunk where one of its ids is open, more is to be done, or the run no longer runs', async () => {
    await startRun([2, 1]);
    const { epoch, known } = await claim();
    await update(epoch, { wanted: [0, 1], known });
    const back = { index: 1, cell: unmark(mark(untouched), 1, false) };
    const results = [{ index: 0, cell: deleted }, back];
    expect((await update(epoch, { results, known, isLast: true })).isReturned).toBe(false);
    await update(epoch, { wanted: [1], known });
    await steer('pause');
    const last = [{ index: 1, cell: settle('deleted', 2, codeOfStatus(204)) }];
    expect(await update(epoch, { results: last, known, isLast: true })).toEqual({ state: 'paused', cells: [] });
    expect(await redis.hexists(keys.open(id), '0')).toBe(1);
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: null })).toBe('paused');
  });

  /** @invariant old-epoch */
  test('is merged where somebody else has written since, and so is every later one', async () => {
    await startRun([3, 1]);
    const { epoch, known } = await claim();
    await update(epoch, { wanted: [0, 1], known });
    await writeCells([absent]); // better evidence of a former holder
    await update(epoch, { results: [{ index: 0, cell: unmark(mark(untouched), 1, false) }], wanted: [1], known });
    expect((await cells())[0]).toBe(absent);
    expect(known.plan([], [2])).toBeNull();
  });

  test('is merged as that of a former holder where another Redis answers than the one of its claim', async () => {
    await startRun([3, 1]);
    const { epoch } = await claim();
    const other = new KnownCells([mark(untouched), untouched, untouched], {
      process: 'gone',
      history: '',
      isDurable: null,
      ancestors: [],
    });
    expect(await update(epoch, { wanted: [0], known: other })).toEqual({ state: 'stale', cells: [] });
  });

  test('gets no marks once the run is paused, or another holder has the chunk', async () => {
    await startRun([3, 1]);
    const former = await claim();
    const { epoch, known } = await claim();
    expect(await update(former.epoch, { wanted: [0], known: former.known })).toEqual({ state: 'stale', cells: [] });
    await steer('pause');
    expect(await update(epoch, { wanted: [0], known })).toEqual({ state: 'paused', cells: [] });
    expect(await cells()).toEqual([untouched, untouched, untouched]);
  });

  test('counts nothing twice where its answer was lost and it comes again', async () => {
    await startRun([2, 1]);
    const { epoch, known } = await claim();
    await update(epoch, { wanted: [0, 1], known });
    const again = new KnownCells([mark(untouched), mark(untouched)], known.server);
    const results = [{ index: 0, cell: deleted }];
    await update(epoch, { results, known });
    await update(epoch, { results, known: again });
    expect(await counters()).toEqual({ deleted: 1, settled: 1, attempts: 1, state: 'running' });
  });

  test('finalizes the run with its last id', async () => {
    await startRun([1]);
    const { epoch, known } = await claim();
    await update(epoch, { wanted: [0], known });
    expect(await update(epoch, { results: [{ index: 0, cell: deleted }], known })).toMatchObject({
      state: 'completed',
    });
  });
});

describe('an update', () => {
  /** @invariant old-epoch: A former holder gets no marks, but its results are merged. A finalized ledger never changes. */
  test('gives the holder of an old epoch no marks, but takes its results', async () => {
    await startRun([2]);
    const old = await claim();
    await claim();
    const grant = await update(old.epoch, { results: [{ index: 0, cell: deleted }], wanted: [1] });
    expect(grant).toMatchObject({ state: 'stale', cells: [] });
    expect(await cells()).toEqual([deleted, untouched]);
  });

  test('puts an id in doubt that a dead holder has left marked', async () => {
    await startRun([1]);
    const dead = await claim();
    await update(dead.epoch, { wanted: [0] });
    const { epoch } = await claim();
    const { cells: granted } = await update(epoch, { wanted: [0] });
    expect(granted.map(isDoubtful)).toEqual([true]);
  });

  test.each([
    ['absent', 404, 'gone_unconfirmed'],
    ['failed', 403, 'unknown'],
    ['deleted', 204, 'deleted'],
  ] as const)(
    'takes %s of a holder that another one has overtaken for what it can know: %i is %s',
    async (said, status, means) => {
      await startRun([1]);
      const slow = await claim();
      await update(slow.epoch, { wanted: [0] });
      const { epoch } = await claim();
      await update(epoch, { wanted: [0] }); // it may have been deleted by this one's request
      await update(slow.epoch, { results: [{ index: 0, cell: settle(said, 1, codeOfStatus(status)) }] });
      expect(readCell((await cells())[0]!)).toMatchObject({ outcome: means, status });
      expect((await record()).counts).toMatchObject({ [means]: 1 });
    },
  );

  test('settles the last id and with it the run', async () => {
    await startRun([2]);
    const { epoch } = await claim();
    const results = [0, 1].map((index) => ({ index, cell: deleted }));
    expect(await update(epoch, { results })).toMatchObject({ state: 'completed' });
    expect(await record()).toMatchObject({ state: 'completed', settled: 2, counts: { deleted: 2 }, attempts: 2 });
  });

  /** @invariant old-epoch */
  test('changes nothing any more once the run is finalized, and counts what comes too late', async () => {
    await startRun([2]);
    const { epoch } = await claim();
    await update(epoch, { wanted: [0, 1] });
    await steer('cancel');
    await wasCancelled(20_000);
    await ledger.reclaim(id);
    const before = await cells();
    expect(await update(epoch, { results: [{ index: 0, cell: deleted }], wanted: [1] })).toMatchObject({ cells: [] });
    expect(await cells()).toEqual(before);
    expect(await record()).toMatchObject({ state: 'cancelled', late: 1, counts: { deleted: 0 } });
  });

  test('says that Redis has lost the chunk', async () => {
    await startRun([2]);
    const { epoch } = await claim();
    await redis.del(keys.ledger(id, 0));
    expect(await update(epoch, { wanted: [0] })).toMatchObject({ state: 'broken', cells: [] });
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: null })).toBe('broken');
    expect(await redis.exists(keys.ledger(id, 0))).toBe(0);
  });
});

describe('marks that were made very often', () => {
  /** One pass over the only id, which is told to wait; returns the cell it was put back as. */
  async function waitOnce(): Promise<Cell> {
    const { epoch } = await claim();
    const marked = (await update(epoch, { wanted: [0] })).cells[0]!;
    const back = unmark(marked, 0, false);
    await update(epoch, { results: [{ index: 0, cell: back }] });
    await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0, resetsMarks: hasManyMarks(back) });
    await ledger.enqueue(id);
    return back;
  }

  test('never put an id in doubt, however often it is told to wait', async () => {
    await startRun([1]);
    for (let n = 0; n < 300; n++) await waitOnce();
    expect(isDoubtful((await cells())[0]!)).toBe(false);
  });

  test('put an id in doubt with the 255th, after which no holder could tell that a request is on its way', async () => {
    const marked = (times: number): Cell => times << 4;
    await startRun([3]);
    const { epoch } = await claim();
    await writeCells([252, 253, 254].map(marked));
    const granted = (await update(epoch, { wanted: [0, 1, 2] })).cells;
    expect(granted.map(isDoubtful)).toEqual([false, true, true]); // 253: the holder before died
    expect(granted).toEqual([252, 253, 254].map((times) => mark(marked(times))));
    expect(await cells()).toEqual(granted);
  });

  test('are counted anew where nothing is on its way, and only there', async () => {
    const all = Array.from({ length: 0x2000 }, (_, cell) => cell).concat(absent, deleted);
    await startRun([all.length]);
    const { epoch } = await claim();
    await writeCells(all);
    await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0, resetsMarks: true });
    expect(await cells()).toEqual(all.map(resetMarks));
    const isMarked = (cell: Cell) => !isSettled(cell) && ((cell >> 4) & 1) === 1;
    expect((await cells()).map(isMarked)).toEqual(all.map(isMarked));
    expect((await cells()).some((cell) => hasManyMarks(cell) && !isMarked(cell))).toBe(false);
  });

  test('still tell that a request is on its way, though a former holder repeats that it was put back', async () => {
    await startRun([1]);
    const former = await claim();
    let back = untouched;
    while (!hasManyMarks(back)) {
      back = unmark((await update(former.epoch, { wanted: [0] })).cells[0]!, 0, false);
      await update(former.epoch, { results: [{ index: 0, cell: back }] });
    }
    await ledger.returnChunk({ run: id, chunk: 0, epoch: former.epoch, dueInMs: 0, resetsMarks: true });
    await ledger.enqueue(id);
    const dies = await claim();
    await update(dies.epoch, { wanted: [0] });
    await update(former.epoch, { results: [{ index: 0, cell: back }] });
    const { epoch } = await claim();
    expect((await update(epoch, { wanted: [0] })).cells.map(isDoubtful)).toEqual([true]);
  });
});

describe('a cancelled run', () => {
  test('is over at once where nobody holds a chunk', async () => {
    await startRun([1, 1]);
    expect(await steer('cancel')).toMatchObject({ before: 'running', after: 'cancelled' });
    expect(await redis.hlen(keys.open(id))).toBe(0);
    expect(await steer('start')).toMatchObject({ before: 'cancelled', after: 'cancelled' });
  });

  test('is over when the last holder gives its chunk back', async () => {
    await startRun([1, 1]);
    const [a, b] = [await claim(0), await claim(1)];
    expect(await steer('cancel')).toMatchObject({ before: 'running', after: 'cancelling' });
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch: a.epoch, dueInMs: 0 })).toBe('cancelling');
    expect(await ledger.returnChunk({ run: id, chunk: 1, epoch: b.epoch, dueInMs: 0 })).toBe('cancelled');
  });

  test('is taken from dead holders after 15 s without a keepalive', async () => {
    await startRun([1]);
    const { epoch } = await claim();
    await steer('cancel');
    await wasCancelled(14_000);
    expect(await ledger.reclaim(id)).toBe('cancelling');
    await wasCancelled(16_000);
    expect(await ledger.reclaim(id)).toBe('cancelled');
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0 })).toBe('stale');
    expect(await ledger.reclaim(id)).toBe('cancelled');
  });

  test('waits for a holder that is alive, as long as its requests may take', async () => {
    await startRun([1, 1]);
    const [a] = [await claim(0), await claim(1)];
    await steer('cancel');
    await ledger.keepalive(id, 'slow', 600_000);
    await wasCancelled(500_000);
    expect(await ledger.reclaim(id)).toBe('cancelling');
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch: a.epoch, dueInMs: 0 })).toBe('cancelling');
    await wasCancelled(616_000);
    expect(await ledger.reclaim(id)).toBe('cancelled');
  });

  test('does not wait for a holder whose keepalives have stopped', async () => {
    await startRun([1]);
    await claim();
    await steer('cancel');
    await ledger.keepalive(id, 'slow', 600_000);
    await wasCancelled(100_000);
    await redis.zadd(keys.holders(id), Date.now() - 16_000, 'slow 600000');
    expect(await ledger.reclaim(id)).toBe('cancelled');
  });
});

async function wasCancelled(msAgo: number): Promise<void> {
  await redis.hset(keys.run(id), 'changedAt', Date.now() - msAgo);
}

describe('the time of an outcome', () => {
  const early = '2026-01-01T00:00:00Z';

  test('is noted with it, to the second, and stays when neighbours need many tries more', async () => {
    const before = Date.now();
    await startRun([30]);
    const { epoch } = await claim();
    const cellAfter = (tries: number) => settle('deleted', tries, codeOfStatus(204));
    const quick = [0, 1, 2].map((index) => ({ index, cell: cellAfter(index + 1) }));
    await update(epoch, { results: quick });
    expectSince(before, Date.parse((await times())[0]!));

    await backDate();
    const late = { index: 3, cell: cellAfter(5) }; // in its second pass
    await update(epoch, { results: [late, { index: 25, cell: deleted }] });
    await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 0 });
    const settledAt = await times();
    expect(settledAt.slice(0, 3)).toEqual([early, early, early]);
    expect(settledAt[4]).toBe('');
    for (const index of [3, 25]) expectSince(before, Date.parse(settledAt[index]!));
  });

  test('is never earlier than the outcome, whoever else shares it', async () => {
    await startRun([30]);
    const { epoch } = await claim();
    await update(epoch, { results: [{ index: 0, cell: deleted }] });
    await backDate();
    const before = Date.now();
    await update(epoch, { results: [{ index: 9, cell: deleted }] });
    expect(Date.parse((await times())[9]!)).toBeGreaterThanOrEqual(before);
  });

  async function times(): Promise<string[]> {
    const rows: string[] = [];
    for await (const page of readOutcomes(redis, await record())) rows.push(...page.map(({ settledAt }) => settledAt));
    return rows;
  }

  /** As if all that is settled had been settled long ago. */
  async function backDate(): Promise<void> {
    const bytes = (await redis.getBuffer(keys.ledger(id, 0)))!;
    for (let at = 6; at < headerBytes; at += 4) {
      if (bytes.readUInt32BE(at) > 0) bytes.writeUInt32BE(Date.parse(early) / 1_000, at);
    }
    await redis.set(keys.ledger(id, 0), bytes);
  }
});

describe('the deleting time of a run', () => {
  test('counts while somebody works on it, and not the time after a crash', async () => {
    await startRun([2]);
    await letPass(4_000);
    await ledger.enqueue(id);
    await letPass(3_000);
    await ledger.enqueue(id);
    await letPass(3_600_000); // its process was killed, and the same command comes an hour later
    const { epoch } = await claim();
    await letPass(2_000);
    const results = [0, 1].map((index) => ({ index, cell: deleted }));
    expect(await update(epoch, { results })).toMatchObject({ state: 'completed' });
    expect((await record()).activeMs / 1_000).toBeCloseTo(9, 0);
  });

  /** As if the clock of Redis went on by itself. */
  async function letPass(ms: number): Promise<void> {
    await redis.hincrby(keys.run(id), 'activeUntil', -ms);
  }
});

describe('a chunk', () => {
  test('that was returned is enqueued again when it is due, before new ones', async () => {
    await startRun([1, 1, 1, 1, 1, 1]);
    const { epoch, enqueued } = await claim(0);
    expect(enqueued).toEqual([4]);
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 200 })).toBe('running');
    await claim(1);
    expect((await claim(2)).enqueued).toEqual([]);
    now += 200;
    expect(await ledger.enqueue(id)).toEqual([0]);
  });

  test('whose ids have all failed before is enqueued in turn with new ones', async () => {
    await startRun(Array(12).fill(1));
    const deferred = [0, 1, 2, 3, 4, 5];
    for (const chunk of deferred) {
      const { epoch } = await claim(chunk);
      await ledger.returnChunk({ run: id, chunk, epoch, dueInMs: 200, isRetry: true });
    }
    now += 200;
    const enqueued: number[] = [];
    for (const chunk of [6, 7, 8, 9, 0, 10, 1]) enqueued.push(...(await claim(chunk)).enqueued);
    expect(enqueued).toEqual([0, 10, 1, 11, 2, 3, 4]);
  });

  test('keeps its results when it is returned twice', async () => {
    await startRun([2]);
    const { epoch } = await claim();
    const back = unmark(mark(untouched), 3, true);
    await update(epoch, { wanted: [0, 1] });
    await update(epoch, {
      results: [
        { index: 0, cell: absent },
        { index: 1, cell: back },
      ],
    });
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 1 })).toBe('running');
    expect(await ledger.returnChunk({ run: id, chunk: 0, epoch, dueInMs: 1 })).toBe('stale');
    expect(await cells()).toEqual([absent, back]);
    expect(await redis.zscore(keys.deferred(id), 0)).toBe(String(now + 1));
  });

  test.each(['pause', 'halt', 'cancel'] as const)('is neither enqueued nor claimed after %s', async (action) => {
    await startRun([1, 1]);
    const { epoch } = await claim(0);
    const { after: state } = await steer(action);
    expect(await ledger.enqueue(id)).toEqual([]);
    expect(await ledger.claim(id, 1)).toBe(state);
    expect(await update(epoch, { wanted: [0] })).toMatchObject({ state, cells: [] });
  });
});
