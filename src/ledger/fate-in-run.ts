import { type Cell, type Fate, fateAtSeal, fateOf } from './cell.ts';
import { isSealed, type Run } from './run.ts';

/** How the cells of a run read, as it stands. */
export function fateIn({ state, doubtSince }: Pick<Run, 'state' | 'doubtSince'>): (cell: Cell) => Fate {
  return isSealed(state) ? (cell) => fateAtSeal(cell, doubtSince > 0) : fateOf;
}
