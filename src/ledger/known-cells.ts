import type { ServerIdentity } from '../redis/server-identity.ts';
import {
  attemptsOf,
  type Cell,
  headerBytes,
  isSettled,
  type Join,
  mark,
  packIndexes,
  placeOf,
  sentOutcomeOf,
} from './cell.ts';

/** A step as a comparison: where the chunk still has `before` at `offset`, it has `after` from then on. */
export type KnownStep = {
  offset: number;
  before: Buffer;
  after: Buffer;
  deleted: number;
  attempts: number;
  /** Of the times of outcomes, two bytes each; see writeTimesFunction. */
  places: Buffer;
  /** Whether it hands the chunk back, of which every id is settled then. */
  handsBack: boolean;
  cells: Cell[]; // after it, of the whole chunk
};

/**
 * What the holder of a chunk knows the ledger to hold: all of it, as long as nobody else writes. Then most steps need no merge, because it knows
 * what they make of every cell.
 */
export class KnownCells {
  #cells: Cell[] | null;
  /** The Redis process that held the run when the chunk was claimed. */
  readonly server: ServerIdentity;

  /** `cells`: as they were then. */
  constructor(cells: readonly Cell[], server: ServerIdentity) {
    this.#cells = [...cells];
    this.server = server;
  }

  /**
   * The step, if all its results are 204s or open ids; what others count for (halts, doubt) is for the merge. Null = the merge has to decide.
   * `isLast`: this holder has nothing more to do with the chunk.
   */
  plan(joins: readonly Join[], wanted: readonly number[], isLast = false): KnownStep | null {
    if (this.#cells === null || joins.length + wanted.length === 0) return null;
    const cells = [...this.#cells];
    const counts = { deleted: 0, attempts: 0 };
    const places = new Set<number>();
    let [low, high] = [cells.length, -1];
    for (const { index, cell } of joins) {
      const before = cells[index];
      const isPlain = before !== undefined && !isSettled(before) && cell > before;
      if (!isPlain || (isSettled(cell) && sentOutcomeOf(cell) !== 'deleted')) return null;
      counts.attempts += attemptsOf(cell) - attemptsOf(before);
      if (isSettled(cell)) {
        counts.deleted++;
        places.add(placeOf(index, attemptsOf(cell)));
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
      handsBack: isLast && cells.every(isSettled),
      cells,
    };
  }

  /** The step was made as planned. Returns the cells of `wanted`. */
  accept({ cells }: KnownStep, wanted: readonly number[]): Cell[] {
    this.#cells = cells;
    return wanted.map((index) => cells[index]!);
  }

  /** The merge was made for its holder; `granted` are the cells of `wanted`, or none. */
  merge(joins: readonly Join[], wanted: readonly number[], granted: readonly Cell[]): void {
    if (this.#cells === null) return;
    for (const { index, cell } of joins) this.#cells[index] = Math.max(this.#cells[index]!, cell);
    for (const [at, cell] of granted.entries()) this.#cells[wanted[at]!] = cell;
  }

  /** Somebody else has written: from now on every step is merged. */
  forget(): void {
    this.#cells = null;
  }
}
