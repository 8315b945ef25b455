import {
  type Cell,
  type CellResult,
  countAttempts,
  isSettled,
  mark,
  mergeResult,
  toSentOutcome,
} from '../../src/ledger/cell.ts';
import type { Steering } from '../../src/ledger/ledger.ts';
import type { RunState } from '../../src/ledger/run.ts';
import { isFailure, type SentOutcome, sentOutcomes } from '../../src/model/outcome.ts';

const allowed: Record<Steering['action'], Partial<Record<RunState, RunState>>> = {
  start: { planned: 'running', paused: 'running', halted: 'running' },
  pause: { running: 'paused', planned: 'paused' },
  halt: { running: 'halted' },
  cancel: { planned: 'cancelling', running: 'cancelling', paused: 'cancelling', halted: 'cancelling' },
};

const unclaimedShare = 4;

/** A returned chunk, due at `dueAt`, or settled. `isRetry`: see `ReturnedChunk`. */
type ModelReturn = { chunk: number; epoch: number; dueAt: number | null; isRetry?: boolean | undefined };

/** What the scripts should do to a run without a rate, in plain TypeScript. */
export class RunModel {
  state: RunState = 'planned';
  readonly cells: Cell[][];
  readonly open = new Map<number, number>();
  readonly deferred = new Map<number, number>();
  next = 0;
  #isNewTurn = false;
  epoch = 0;
  unexpected = 0;
  late = 0;

  constructor(sizes: number[]) {
    this.cells = sizes.map((size) => new Array<Cell>(size).fill(0));
  }

  enqueue(now: number): number[] {
    const enqueued: number[] = [];
    if (this.state !== 'running') return enqueued;
    const unclaimed = () => [...this.open.values()].filter((epoch) => epoch === 0).length;
    while (unclaimed() < unclaimedShare) {
      const due = this.#due(now);
      const isRetry = due !== null && this.deferred.get(due)! % 1 !== 0;
      const isNew = this.next < this.cells.length && (due === null || (isRetry && this.#isNewTurn));
      const chunk = isNew ? this.next++ : due;
      if (chunk === null) break;
      this.#isNewTurn = !isNew && (this.#isNewTurn || isRetry);
      this.deferred.delete(chunk);
      this.open.set(chunk, 0);
      enqueued.push(chunk);
    }
    return enqueued;
  }

  #due(now: number): number | null {
    const due = [...this.deferred].filter(([, at]) => at <= now);
    due.sort(([chunkA, a], [chunkB, b]) => a - b || (String(chunkA) < String(chunkB) ? -1 : 1));
    return due[0]?.[0] ?? null;
  }

  /** The epoch, 0 where there is nothing to do, and what the claim enqueued. */
  claim(chunk: number, now: number): [epoch: number, enqueued: number[]] {
    if (this.state !== 'running' || !this.open.has(chunk)) return [0, []];
    this.open.set(chunk, ++this.epoch);
    return [this.epoch, this.enqueue(now)];
  }

  update(chunk: number, epoch: number, results: readonly CellResult[], wanted: readonly number[]): Cell[] {
    const cells = this.cells[chunk]!;
    const settledBefore = this.settled;
    const isHolder = epoch !== 0 && this.open.get(chunk) === epoch;
    for (const { index, cell } of results) this.#merge(cells, index, cell, isHolder);
    if (this.settled > settledBefore && this.settled === this.ids) this.state = 'completed';
    // A run of this model is too short for any other rule.
    if (this.settled > settledBefore && this.unexpected >= 3 && this.state === 'running') this.state = 'halted';
    if (this.state !== 'running' || !isHolder) return [];
    return wanted.map((index) => {
      const cell = cells[index]!;
      if (!isSettled(cell)) cells[index] = mark(cell);
      return cells[index]!;
    });
  }

  #merge(cells: Cell[], index: number, result: Cell, isHolder: boolean): void {
    if (this.isFinalized) {
      this.late++;
      return;
    }
    const known = cells[index]!;
    const cell = mergeResult(known, result, isHolder);
    if (cell === known) return;
    cells[index] = cell;
    const status = (cell & 511) + 88;
    const isNew = isSettled(cell) && !isSettled(known);
    if (isNew && isFailure(toSentOutcome(cell)) && status >= 200 && status < 400) this.unexpected++;
  }

  returnChunk({ chunk, epoch, dueAt, isRetry = false }: ModelReturn): RunState | 'stale' {
    if (epoch === 0 || this.open.get(chunk) !== epoch) return 'stale';
    this.open.delete(chunk);
    if (dueAt !== null) this.deferred.set(chunk, dueAt - (isRetry ? 0.5 : 0));
    if (this.state === 'cancelling' && this.open.size === 0) this.state = 'cancelled';
    return this.state;
  }

  reclaim(now: number): RunState {
    if (this.state !== 'cancelling') return this.state;
    for (const chunk of this.open.keys()) this.deferred.set(chunk, now);
    this.open.clear();
    this.state = 'cancelled';
    return this.state;
  }

  steer(action: Steering['action'], now: number): [RunState, RunState] {
    const before = this.state;
    const after = allowed[action][before];
    if (after === undefined) return [before, before];
    this.state = after;
    if (after === 'running') {
      this.unexpected = 0;
      if (this.settled === this.ids) this.state = 'completed';
    }
    if (after === 'cancelling') {
      for (const [chunk, epoch] of this.open) if (epoch === 0) this.deferred.set(chunk, now);
      for (const [chunk, epoch] of this.open) if (epoch === 0) this.open.delete(chunk);
      if (this.open.size === 0) this.state = 'cancelled';
    }
    return [before, this.state];
  }

  get isFinalized(): boolean {
    return this.state === 'completed' || this.state === 'cancelled';
  }

  get ids(): number {
    return this.cells.flat().length;
  }

  get settled(): number {
    return this.cells.flat().filter(isSettled).length;
  }

  get attempts(): number {
    return this.cells.flat().reduce((sum, cell) => sum + countAttempts(cell), 0);
  }

  get counts(): Record<SentOutcome, number> {
    const settled = this.cells.flat().filter(isSettled).map(toSentOutcome);
    return Object.fromEntries(
      sentOutcomes.map((outcome) => [outcome, settled.filter((found) => found === outcome).length]),
    ) as Record<SentOutcome, number>;
  }
}
