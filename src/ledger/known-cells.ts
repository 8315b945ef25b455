import type { ServerIdentity } from '../redis/server-identity.ts';
import {
  type Cell,
  type CellResult,
  countAttempts,
  headerBytes,
  isSettled,
  mark,
  packIndexes,
  timePlace,
  toSentOutcome,
} from './cell.ts';

/** An update as a comparison: if the chunk still has `before` at `offset`, it has `after` from then on. */
export type KnownUpdate = {
  offset: number;
  before: Buffer;
  after: Buffer;
  deleted: number;
  attempts: number;
  /** Places of the times of outcomes, two bytes each; see writeTimesFunction. */
  places: Buffer;
  /** Whether it returns the chunk, once every id of the chunk is settled. */
  returnsChunk: boolean;
  cells: Cell[]; // after it, for the whole chunk
};

/**
 * The cells of a chunk as its holder knows them: complete as long as no other process writes. Then most updates need no merge, because the holder
 * knows their effect on every cell.
 */
export class KnownCells {
  #cells: Cell[] | null;
  /** The Redis process that held the run when the chunk was claimed. */
  readonly server: ServerIdentity;

  /** `cells`: at the time of the claim. */
  constructor(cells: readonly Cell[], server: ServerIdentity) {
    this.#cells = [...cells];
    this.server = server;
  }

  /**
   * Plans the update, if all its results are 204s or open ids. Other results have further effects (halts, doubt), which need the merge. Null: the
   * merge has to decide. `isLast`: the holder no longer needs the chunk; if every id is settled, it is returned.
   */
  plan(results: readonly CellResult[], wanted: readonly number[], isLast = false): KnownUpdate | null {
    if (this.#cells === null || results.length + wanted.length === 0) return null;
    const cells = [...this.#cells];
    const counts = { deleted: 0, attempts: 0 };
    const places = new Set<number>();
    let [low, high] = [cells.length, -1];
    for (const { index, cell } of results) {
      const before = cells[index];
      const isPlain = before !== undefined && !isSettled(before) && cell > before;
      if (!isPlain || (isSettled(cell) && toSentOutcome(cell) !== 'deleted')) return null;
      counts.attempts += countAttempts(cell) - countAttempts(before);
      if (isSettled(cell)) {
        counts.deleted++;
        places.add(timePlace(index, countAttempts(cell)));
      }
      cells[index] = cell;
      if (index < low) low = index;
      if (index > high) high = index;
    }
    for (const index of wanted) {
      const before = cells[index];
      if (before === undefined || isSettled(before)) return null;
      cells[index] = mark(before);
      if (index < low) low = index;
      if (index > high) high = index;
    }
    return {
      ...counts,
      offset: headerBytes + 2 * low,
      before: packIndexes(this.#cells.slice(low, high + 1)),
      after: packIndexes(cells.slice(low, high + 1)),
      places: packIndexes([...places]),
      returnsChunk: isLast && cells.every(isSettled),
      cells,
    };
  }

  /** Takes over the cells after an update that was made as planned. Returns the cells of `wanted`. */
  accept({ cells }: KnownUpdate, wanted: readonly number[]): Cell[] {
    this.#cells = cells;
    return wanted.map((index) => cells[index]!);
  }

  /** Takes over the cells after a merge that was made for this holder; `granted` are the cells of `wanted`, or none. */
  merge(results: readonly CellResult[], wanted: readonly number[], granted: readonly Cell[]): void {
    if (this.#cells === null) return;
    for (const { index, cell } of results) this.#cells[index] = Math.max(this.#cells[index]!, cell);
    for (const [at, cell] of granted.entries()) this.#cells[wanted[at]!] = cell;
  }

  /** Another process has written: from now on every update is merged. */
  forget(): void {
    this.#cells = null;
  }
}
