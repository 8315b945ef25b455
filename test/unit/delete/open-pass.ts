import { onTestFinished, vi } from 'vitest';
import { ChunkPass, type PassDeps } from '../../../src/delete/chunk-pass.ts';
import type { QueuedRequest } from '../../../src/delete/connection-pool.ts';
import { Refusals } from '../../../src/delete/refusals.ts';
import type { PoolHandle } from '../../../src/delete/run-request-queue.ts';
import { type Answer, noContent, verdictTable } from '../../../src/delete/verdict.ts';
import { type Cell, type CellResult, readCell } from '../../../src/ledger/cell.ts';
import type { Grant } from '../../../src/ledger/ledger.ts';
import { bearerForm } from '../../../src/model/resource.ts';
import { fakeSleep } from '../../support/fake-sleep.ts';
import { RunModel } from '../../support/run-model.ts';
import { everyRefusal, givenToken, openLimits } from './tries.ts';

/** When a pass begins. Not 0: then a sum of times would be as good as their difference. */
export const startMs = 1_000_000;

/** What the server answers to the n-th request for an index, counted from 1. */
type Server = (index: number, n: number) => Answer;

type Odd = Partial<PassDeps> & {
  /** The answers; 204 if it is missing. */
  server?: Server;
  /** What an update answers, if it isn't what the ledger does. */
  grant?: (grant: Grant) => Grant;
  /** How many more requests there is room for. */
  room?: number;
  /** False: requests wait until the test lets them leave. */
  leavesAtOnce?: boolean;
  /** Cells as the ledger has them, where the claim saw others. */
  ledgerCells?: Cell[];
};

/** Goes on until nothing is left to do in this moment. */
export function settleDown(): Promise<unknown> {
  return vi.advanceTimersByTimeAsync(0);
}

/**
 * A pass over a chunk of a run in an in-memory ledger, in a time that only the test moves. `events` has what happened, in order: `mark 0,1`
 * and `merge 0` of an update, `send 0` of a request.
 */
export function openPass(cells: Cell[], odd: Odd = {}) {
  vi.useFakeTimers({ now: startMs });
  onTestFinished(() => void vi.useRealTimers());
  const { server = () => noContent, grant = (same) => same, leavesAtOnce = true, ...work } = odd;
  const ledger = new RunModel([cells.length]);
  ledger.state = 'running';
  ledger.cells[0] = [...(odd.ledgerCells ?? cells)];
  ledger.open.set(0, ++ledger.epoch);
  const closed = new AbortController();
  const events: string[] = [];
  const notes: string[] = [];
  const measured: string[] = [];
  const expected: number[] = [];
  const waiting: QueuedRequest[] = [];
  const sent = new Map<number, number>();
  const wakers = new Set<() => void>();

  const leave = (request: QueuedRequest): void => {
    const index = Number(request.path.slice(1));
    if (request.authorize(Date.now()) === null) {
      request.answered(null, 0);
      return;
    }
    const n = (sent.get(index) ?? 0) + 1;
    sent.set(index, n);
    events.push(`send ${index}`);
    queueMicrotask(() => request.answered(server(index, n), 7));
  };
  const leaveAll = () => {
    for (const request of waiting.splice(0)) leave(request);
  };
  const way: PoolHandle & { room: (wanted: number) => number; waitMs: number; hasRoomFor: number } = {
    hasRoomFor: odd.room ?? Number.POSITIVE_INFINITY,
    room: (wanted) => Math.min(wanted, way.hasRoomFor),
    reserve: (requests) => void expected.push(requests),
    submit: (request) => {
      waiting.push(request);
      if (leavesAtOnce) leaveAll();
    },
    revalidate: () => {
      for (const request of waiting.splice(0)) {
        if (request.authorize(Date.now()) === null) request.answered(null, 0);
        else waiting.push(request);
      }
    },
    waitMs: 0,
  };
  const refusals = new Refusals('annotations', () => Date.now(), true);
  refusals.expect({ absent: true, mayBeGone: 0, statuses: everyRefusal });
  let updates = 0;
  const update = async (results: CellResult[], wanted: number[]): Promise<Grant> => {
    if (++updates > 100) throw new Error('the pass asks the ledger without end');
    if (results.length > 0) events.push(`merge ${results.map(({ index }) => index)}`);
    if (wanted.length > 0) events.push(`mark ${wanted}`);
    const isHolder = ledger.open.get(0) === 1;
    const granted = ledger.update(0, 1, results, wanted);
    return grant({ state: isHolder ? ledger.state : 'stale', cells: granted });
  };
  const all: PassDeps = {
    limits: openLimits(),
    token: givenToken(),
    verdicts: verdictTable,
    form: bearerForm,
    retryDelaysMs: [5_000],
    isNeverRepeated: false,
    unreachableTimeoutMs: 60_000,
    random: () => 0.5,
    retried: () => {},
    halt: () => {},
    handle: way,
    wakers,
    batchSize: 16,
    clock: () => Date.now(),
    refusals,
    fits: () => true,
    silentMs: () => 0,
    idAt: String,
    sleep: fakeSleep,
    isOpenAt: () => true,
    closed: closed.signal,
    shouldYield: () => false,
    update,
    noteRefusal: async () => 0,
    noteBody: () => {},
    measure: (answer, ms) => void measured.push(`${answer.kind === 'status' ? answer.status : answer.kind} ${ms}`),
    note: (index, cell, answer) =>
      void notes.push(`${index} ${readCell(cell).outcome} ${answer.kind === 'status' ? answer.status : answer.kind}`),
    ...work,
  };
  const indexes = [...cells.keys()];
  const start = (due = indexes) => {
    const pass = new ChunkPass([...cells], (index) => `/${index}`, due, all);
    let isOver = false;
    const run = pass.run().finally(() => {
      isOver = true;
    });
    return {
      pass,
      run,
      get isOver() {
        return isOver;
      },
    };
  };
  const outcomes = () => ledger.cells[0]!.map((cell) => readCell(cell).outcome);
  return {
    ledger,
    closed,
    events,
    notes,
    measured,
    expected,
    waiting,
    sent,
    wakers,
    way,
    start,
    leaveAll,
    outcomes,
  };
}
