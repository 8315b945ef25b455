import { describe, expect, it } from 'vitest';
import { type Cell, headerBytes, mark, packIndexes, settle, unmark, untouched } from '../../../src/ledger/cell.ts';
import { KnownCells } from '../../../src/ledger/known-cells.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';

const deleted = settle('deleted', 1, codeOfStatus(204));
const absent = settle('absent', 1, codeOfStatus(404));
const marked = mark(untouched);

const known = (cells: Cell[]) => new KnownCells(cells, { process: 'p', history: '', isDurable: null, ancestors: [] });

describe('an update of a holder that knows every cell', () => {
  it('is the bytes of the touched span before and after, and what they count for', () => {
    const back = unmark(marked, 2, false);
    const results = [
      { index: 4, cell: deleted },
      { index: 2, cell: back },
    ];
    const update = known([untouched, untouched, marked, untouched, marked, untouched]).plan(results, [2, 3]);
    expect(update).toMatchObject({ offset: headerBytes + 4, deleted: 1, attempts: 3, places: packIndexes([0]) });
    expect(update?.before).toEqual(packIndexes([marked, untouched, marked]));
    expect(update?.after).toEqual(packIndexes([mark(back), marked, deleted]));
  });

  it('is left to the merge for any outcome but deleted, for ids that are settled, and where nothing changes', () => {
    const all = [marked, deleted, marked];
    expect(known(all).plan([{ index: 0, cell: absent }], [])).toBeNull();
    expect(known(all).plan([{ index: 1, cell: deleted }], [])).toBeNull();
    expect(known(all).plan([{ index: 2, cell: marked }], [])).toBeNull();
    expect(known(all).plan([], [1])).toBeNull();
    expect(known(all).plan([], [3])).toBeNull();
    expect(known(all).plan([{ index: 3, cell: deleted }], [])).toBeNull();
    expect(known(all).plan([], [])).toBeNull();
  });

  it('returns the chunk as the last one, if it settles what was open of it', () => {
    const results = [{ index: 1, cell: deleted }];
    expect(known([deleted, marked]).plan(results, [], true)?.returnsChunk).toBe(true);
    expect(known([deleted, marked]).plan(results, [])?.returnsChunk).toBe(false);
    expect(known([untouched, marked]).plan(results, [], true)?.returnsChunk).toBe(false);
  });

  it('knows what it has made of the cells, and what a merge has', () => {
    const cells = known([untouched, untouched, untouched]);
    expect(cells.accept(cells.plan([], [0, 1])!, [0, 1])).toEqual([marked, marked]);
    cells.merge([{ index: 0, cell: absent }], [2], [mark(marked)]);
    expect(cells.plan([{ index: 1, cell: deleted }], [])?.before).toEqual(packIndexes([marked]));
    expect(cells.plan([], [0])).toBeNull();
    expect(cells.plan([{ index: 2, cell: deleted }], [])?.before).toEqual(packIndexes([mark(marked)]));
  });

  it('is never one again once somebody else has written', () => {
    const cells = known([untouched]);
    cells.forget();
    cells.merge([], [0], [marked]);
    expect(cells.plan([], [0])).toBeNull();
  });
});
