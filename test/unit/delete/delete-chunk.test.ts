import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConnectionPool } from '../../../src/delete/connection-pool.ts';
import { type ChunkTask, type DeleteDeps, deleteChunk } from '../../../src/delete/delete-chunk.ts';
import { FirstAnswers } from '../../../src/delete/first-answers.ts';
import { Gate } from '../../../src/delete/gate.ts';
import { RequestMeter, RunMeter } from '../../../src/delete/meters.ts';
import { Refusals } from '../../../src/delete/refusals.ts';
import { RefusedIds } from '../../../src/delete/refused-ids.ts';
import { RunRequestQueue } from '../../../src/delete/run-request-queue.ts';
import type { TargetRequest } from '../../../src/delete/send-delete.ts';
import type { TargetLimits } from '../../../src/delete/target-limits.ts';
import { type Answer, noContent } from '../../../src/delete/verdict.ts';
import { isDoubtful, isSettled, mark, settle, unmark, untouched } from '../../../src/ledger/cell.ts';
import type { Claim, Ledger } from '../../../src/ledger/ledger.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { fakeSleep } from '../../support/fake-sleep.ts';
import { openMemoryLedger } from '../../support/memory-ledger.ts';
import { everyRefusal, givenToken, openLimits, status } from './tries.ts';

const startMs = 1_000_000; // not 0: then a sum of times would be as good as their difference
const deleted = settle('deleted', 1, codeOfStatus(204));
const deferred = unmark(mark(untouched), 3, false);

type Odd = {
  ledger?: Parameters<typeof openMemoryLedger>[1];
  claim?: Partial<Claim>;
  limits?: Partial<TargetLimits>;
  work?: Partial<DeleteDeps>;
  server?: (path: string) => Answer;
  /** The run's own rate as it is stored, and when its next permit is due. */
  rate?: string;
  nextAt?: number;
};

/** One chunk with these cells, worked on in a time that only the test moves. */
function openWork(cells: number[], odd: Odd = {}) {
  vi.useFakeTimers({ now: startMs });
  const { ledger, model, details } = openMemoryLedger([cells], odd.ledger, odd.claim);
  const clock = () => Date.now();
  const paths: string[] = [];
  const told: string[] = [];
  const limits = openLimits({
    enter: () => void told.push('enter'),
    leave: () => void told.push('leave'),
    ...odd.limits,
  });
  const requests: TargetRequest[] = [];
  const send = (request: TargetRequest, done: (answer: Answer) => void) => {
    const { path } = request;
    requests.push(request);
    paths.push(path);
    queueMicrotask(() => done(odd.server?.(path) ?? noContent));
  };
  const connections = new ConnectionPool(4, () => ({ send, close: () => {} }), limits, clock);
  const road = { connections, limits };
  const meters = { annotations: new RequestMeter(), views: new RequestMeter() };
  const stop = new AbortController();
  const giveUp = new AbortController();
  const line = new RunRequestQueue(clock);
  const reply = { state: 'running', now: 0, first: 0, gap: 1, count: 0, quotaUntil: 0, window: '' };
  line.receive({ ...reply, rate: odd.rate ?? '', nextAt: odd.nextAt ?? 0 }, 0);
  onTestFinished(() => {
    connections.close();
    vi.useRealTimers();
  });
  const work: DeleteDeps = {
    ledger,
    sender: road,
    meters,
    wakers: new Set(),
    token: givenToken(),
    refusedIds: new RefusedIds(clock),
    basePath: '/base',
    retryDelaysMs: [5_000, 30_000],
    unreachableTimeoutMs: 60_000,
    clock,
    sleep: fakeSleep,
    random: () => 0,
    shutdownDeadline: giveUp.signal,
    isAnyRunStarved: () => false,
    writes: { rejection: '', failed: (error) => /refused/.test(String(error)), succeeded: () => {} },
    halt: (_run, code) => void told.push(`halt ${code}`),
    onHalted: (run) => void told.push(`halted ${run}`),
    onTakeover: ({ ids, inFlight }) => void told.push(`took over ${ids}, ${inFlight} in flight`),
    noteBody: (run) => void told.push(`body ${run}`),
    addJobs: (_run, chunks) => void (chunks.length > 0 && told.push(`enqueued ${chunks}`)),
    log: {
      debug() {},
      info() {},
      error() {},
      warn: (facts, message) => void told.push(`${message}: ${reasonIn(facts)}`),
    },
    ...odd.work,
  };
  const gate = new Gate(clock);
  const refusals = new Refusals('annotations', clock, true);
  refusals.expect({ absent: true, mayBeGone: 0, statuses: everyRefusal });
  const job: ChunkTask = {
    run: 'r',
    chunk: 0,
    gate,
    requestQueue: line,
    meter: new RunMeter(() => 0),
    refusals: () => refusals,
    firstAnswers: new FirstAnswers(async (_name, form) => form),
    signal: stop.signal,
  };
  const start = () => deleteChunk(job, work);
  return { start, model, details, paths, requests, told, meters, job, gate, stop, giveUp, line };
}

const reasonIn = (facts: object) => (facts as { reason?: string }).reason ?? '';

describe('a chunk', () => {
  test('is sent under the path of the target, counted, and returned settled', async () => {
    const { start, model, paths, told, meters, job } = openWork([untouched, untouched]);
    expect(await start()).toEqual({ state: 'completed', dueInMs: null });
    expect(paths).toHaveLength(2);
    for (const path of paths) expect(path).toMatch(/^\/base\/.*annotations\/id-[01]$/);
    expect(model.cells[0]).toEqual([deleted, deleted]);
    expect([model.open.size, model.deferred.size]).toEqual([0, 0]);
    expect(told).toEqual(['enter', 'leave']);
    expect(Object.fromEntries(meters.annotations.codes)).toEqual({ '204': 2 });
    expect(Object.fromEntries(meters.annotations.outcomes).deleted).toBe(2);
    expect(meters.views.codes).toEqual([['204', 0]]);
    expect(Object.fromEntries(job.meter.take().changes).requests).toBe(2);
  });

  test('has its 204s with a body counted for its run, also after it was returned', async () => {
    const { start, requests, told } = openWork([untouched, untouched]);
    await start();
    requests[1]!.noteBody();
    expect(told).toEqual(['enter', 'leave', 'body r']);
  });

  test('is not returned again if its last update has done that', async () => {
    const update: Ledger['update'] = async ({ wanted = [], isLast }) => ({
      state: 'running',
      cells: wanted.map(() => mark(untouched)),
      isReturned: isLast === true,
    });
    const returnChunk = vi.fn<Ledger['returnChunk']>();
    const { start } = openWork([untouched, untouched], { ledger: { update, returnChunk }, claim: { enqueued: [1] } });
    expect(await start()).toEqual({ state: 'running', dueInMs: null });
    expect(returnChunk).not.toHaveBeenCalled();
  });

  test.each(['paused', 'missing', 'broken', 'other_version'] as const)(
    'is left alone where it is found %s',
    async (state) => {
      const { start, told, paths } = openWork([untouched], { ledger: { claim: async () => state } });
      expect(await start()).toEqual({ state, dueInMs: null });
      expect(told).toEqual([]);
      expect(paths).toEqual([]);
    },
  );

  test('tells which chunks its claim has opened, and why the run is in doubt', async () => {
    const { start, told } = openWork([untouched], { claim: { enqueued: [4, 5], doubt: 'Redis was restarted' } });
    await start();
    const doubt = 'from here on ids that are found gone are gone_unconfirmed, not absent: Redis was restarted';
    expect(told.slice(0, 2)).toEqual(['enqueued 4,5', doubt]);
  });

  test("takes answers for what the run's --on-status says", async () => {
    const { start, model } = openWork([untouched], { claim: { onStatus: '409=absent' }, server: () => status(409) });
    await start();
    expect(model.counts.absent).toBe(1);
  });

  test('keeps what the server said of an id that failed', async () => {
    const server = () => ({ ...status(400), body: 'no such field' });
    const { start, details } = openWork([untouched], { server });
    await start();
    await vi.waitFor(() => expect(details).toEqual(['0.0 no such field']));
  });

  test('gives up its place among those at work, whatever happens to it', async () => {
    const { start, told, giveUp } = openWork([untouched], {
      ledger: { update: () => Promise.reject(new Error('away')) },
    });
    giveUp.abort();
    await expect(start()).rejects.toThrow('away');
    expect(told).toEqual(['enter', 'leave']);
  });
});

describe('a chunk that another process has not returned', () => {
  test('is told of, with its open ids and those that may have been sent', async () => {
    const { start, told } = openWork([deleted, mark(untouched), untouched], { claim: { isTakeover: true } });
    await start();
    expect(told[0]).toBe('took over 2, 1 in flight');
  });

  test('is none if it was returned', async () => {
    const { start, told } = openWork([deleted, untouched]);
    await start();
    expect(told).toEqual(['enter', 'leave']);
  });

  test('counts its ids only where this process has settled them first', async () => {
    const settledBefore = new Set([1]);
    const update: Ledger['update'] = async ({ wanted = [], results = [] }) => {
      const cells = wanted.map(() => mark(untouched));
      return { state: 'running', cells, ...(results.length > 1 && { settledBefore }) };
    };
    const { start, meters } = openWork([untouched, untouched], { ledger: { update } });
    await start();
    expect(Object.fromEntries(meters.annotations.outcomes).deleted).toBe(1);
  });
});

describe('of a chunk that was worked on before', () => {
  const attempts = (n: number) => unmark(mark(untouched), n, false);

  test.each<[passedMs: number, sent: number[]]>([
    [4_999, [0]],
    [5_000, [0, 1, 2]],
    [29_999, [0, 1, 2]],
    [30_000, [0, 1, 2, 3]],
  ])('those ids are due after %i ms whose wait is over', async (passedMs, sent) => {
    const cells = [untouched, attempts(1), attempts(3), attempts(4), deleted];
    const { start, paths } = openWork(cells, { claim: { passedMs } });
    await start();
    expect(paths.map((path) => Number(path.at(-1))).sort()).toEqual(sent);
  });

  test('those are due that wait shortest, where a clock says that none is', async () => {
    const { start, paths } = openWork([attempts(4), attempts(3), deleted], { claim: { passedMs: 0 } });
    await start();
    expect(paths.map((path) => path.at(-1))).toEqual(['1']);
  });
});

describe('a chunk is returned', () => {
  test('to be due when the first of its open ids is', async () => {
    const { start, model } = openWork([deferred, untouched], { server: () => status(409), claim: { passedMs: 5_000 } });
    const running = start();
    await vi.advanceTimersByTimeAsync(50);
    expect(await running).toEqual({ state: 'running', dueInMs: null });
    const [dueAt] = [...model.deferred.values()];
    expect(dueAt).toBe(4_999.5);
  });

  test('to be due when a wait is over that the server asked for one id', async () => {
    const { start, model } = openWork([untouched], { claim: { onStatus: '423=wait' }, server: () => status(423) });
    await start();
    expect([...model.deferred.values()]).toEqual([4_999.5]);
  });

  test('to be due at once where it was interrupted', async () => {
    const { start, model, gate } = openWork([untouched]);
    gate.close();
    expect(await start()).toEqual({ state: 'running', dueInMs: 0 });
    expect([...model.deferred.values()]).toEqual([0]);
  });

  test.each([
    ['3 s', 3_000, 3_000],
    ['5 s at most', 60_000, 5_000],
  ])('to be due when the target may be asked again: after %s', async (_, throttledMs, due) => {
    const { start, model, stop } = openWork([untouched], { limits: { throttledMs, isBlocked: true } });
    stop.abort();
    expect(await start()).toEqual({ state: 'running', dueInMs: null });
    expect([...model.deferred.values()]).toEqual([due]);
  });

  test("to be due after 5 s where the run's own rate brings no permit for longer", async () => {
    const { start, model } = openWork([untouched], { rate: '1/3600000', nextAt: 3_600_000 });
    expect(await start()).toEqual({ state: 'running', dueInMs: 5_000 });
    expect([...model.deferred.values()]).toEqual([5_000]);
  });

  test.each([
    [true, true],
    [false, false],
  ])(
    'after 2 s of waiting for a permit of its own rate where another run is starved: %s',
    async (isStarved, isBack) => {
      const { start, model, stop } = openWork([untouched], {
        rate: '1/60000',
        nextAt: startMs + 4_000,
        work: { isAnyRunStarved: () => isStarved },
      });
      const running = start();
      await vi.advanceTimersByTimeAsync(2_200);
      expect(model.deferred.size).toBe(isBack ? 1 : 0);
      stop.abort();
      await vi.advanceTimersByTimeAsync(200);
      expect(await running).toMatchObject({ state: 'running' });
    },
  );

  test('to be looked at at once where Redis may have lost what it took', async () => {
    const back: unknown[] = [];
    const { start } = openWork([deferred], {
      ledger: {
        stillHolds: async () => false,
        returnChunk: async (returned) => {
          back.push(returned);
          return 'running';
        },
      },
    });
    expect(await start()).toEqual({ state: 'running', dueInMs: 0 });
    expect(back).toEqual([
      { run: 'r', chunk: 0, epoch: 1, dueInMs: 0, resetsMarks: false, sendable: undefined, isRetry: true },
    ]);
  });

  test('with its marks counted anew where an id has many', async () => {
    let many = untouched;
    for (let n = 0; n < 64; n++) many = unmark(mark(many), 0, false);
    const { start, model, gate } = openWork([untouched, many]);
    gate.close();
    await start();
    expect(model.cells[0]!.map((cell) => (cell >> 4) & 255)).toEqual([0, 16]);
  });
});

describe('an update', () => {
  test('is repeated until Redis takes it, without asking for marks again, and reported once', async () => {
    const asked: number[][] = [];
    let isAway = true;
    const update: Ledger['update'] = async ({ epoch, wanted = [] }) => {
      asked.push([epoch, ...wanted]);
      if (isAway) throw new Error('away');
      return { state: 'running', cells: [] };
    };
    const { start, told, stop } = openWork([untouched, untouched], { ledger: { update } });
    const running = start();
    await vi.advanceTimersByTimeAsync(599);
    expect(asked).toEqual([[1, 0, 1], [1], [1]]);
    isAway = false;
    stop.abort();
    await vi.advanceTimersByTimeAsync(1);
    await running;
    expect(asked.slice(3)).toEqual([[1]]);
    expect(told.filter((line) => line.startsWith('Redis does not accept results'))).toHaveLength(1);
  });

  test('that Redis refuses is not told of here: whoever follows writes does', async () => {
    const { start, told, giveUp } = openWork([untouched], {
      ledger: { update: () => Promise.reject(new Error('refused')) },
    });
    const running = start();
    running.catch(() => {});
    await vi.advanceTimersByTimeAsync(300);
    giveUp.abort();
    await expect(running).rejects.toThrow('refused');
    expect(told).toEqual(['enter', 'leave']);
  });

  test('uses what the holder knows of the cells, as long as it surely holds the chunk', async () => {
    const uses = async (odd: Odd['ledger'] = {}) => {
      const { ledger } = openMemoryLedger([[untouched]]);
      const known: boolean[] = [];
      const update: Ledger['update'] = (asked) => {
        known.push(asked.known !== undefined);
        return ledger.update(asked);
      };
      await openWork([untouched], {
        ledger: { update, claim: ledger.claim, returnChunk: ledger.returnChunk, ...odd },
      }).start();
      return known;
    };
    expect(await uses()).toEqual([true, true]);
    expect(await uses({ stillHolds: async () => false })).toEqual([false]);
  });

  test('of one who may no longer hold the chunk is that of nobody: it gets no marks', async () => {
    const { start, paths, model } = openWork([untouched], { ledger: { stillHolds: async () => false } });
    await start();
    expect(paths).toEqual([]);
    expect(model.cells[0]).toEqual([untouched]);
  });

  test('that finds the run halted closes its gate, and tells of the halt once', async () => {
    const { start, told, gate, model } = openWork([untouched]);
    const running = start();
    model.state = 'halted';
    await running;
    expect(gate.closed.aborted).toBe(true);
    expect(told).toEqual(['enter', 'halted r', 'leave']);
  });

  test('that finds it paused closes its gate without telling, one that lost the chunk does not', async () => {
    const paused = openWork([untouched]);
    const running = paused.start();
    paused.model.state = 'paused';
    await running;
    expect(paused.gate.closed.aborted).toBe(true);
    expect(paused.told).toEqual(['enter', 'leave']);
    const stale = openWork([untouched], { ledger: { stillHolds: async () => false } });
    await stale.start();
    expect(stale.gate.closed.aborted).toBe(false);
  });
});

test('an id whose answer may have been lost is doubtful in the ledger, one that was refused is not', async () => {
  const server = (path: string): Answer =>
    path.endsWith('0') ? { kind: 'maybe-sent', code: 'reset', why: 'ECONNRESET' } : status(409);
  const { start, model, meters } = openWork([deferred, deferred], { server, claim: { passedMs: 5_000 } });
  await start();
  expect(model.cells[0]!.map(isDoubtful)).toEqual([true, false]);
  expect(model.cells[0]!.some(isSettled)).toBe(false);
  expect(Object.fromEntries(meters.annotations.retries)).toEqual({ reset: 1, status: 1 });
});
