import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Cell,
  countAttempts,
  hasManyMarks,
  isDoubtful,
  isSettled,
  mark,
  merge,
  mergeResult,
  packIndexes,
  packResults,
  readCell,
  readFinalCell,
  resetMarks,
  settle,
  timesMarked,
  unmark,
  unpackCells,
  untouched,
} from '../../../src/ledger/cell.ts';
import { codeOfStatus, codeOfWord, sentOutcomes } from '../../../src/model/outcome.ts';

const anyCell = fc.nat(0xffff);
const anyOpen = fc.nat(0x1fff);
const anySettled = fc
  .tuple(fc.constantFrom(...sentOutcomes), fc.nat(15), fc.nat(511))
  .map(([outcome, attempts, code]) => settle(outcome, attempts, code));

/** What a holder can do with an open id. */
type Move = { kind: 'mark' } | { kind: 'back'; sent: number; ambiguous: boolean };
const anyMove = fc.oneof(
  fc.constant<Move>({ kind: 'mark' }),
  fc.record({ kind: fc.constant('back' as const), sent: fc.nat(3), ambiguous: fc.boolean() }),
);

/** The cells an id passes through: each holder marks before it puts back; one that dies leaves its mark. */
function walk(moves: Move[]): Cell[] {
  const cells = [untouched];
  for (const move of moves) {
    const cell = cells.at(-1)!;
    if (move.kind === 'mark') cells.push(mark(cell));
    else if (isMarked(cell)) cells.push(unmark(cell, countAttempts(cell) + move.sent, move.ambiguous));
  }
  return cells;
}

function isMarked(cell: Cell): boolean {
  return ((cell >> 4) & 1) === 1;
}

describe('merge', () => {
  /** @invariant merge-is-max: A merge of cells depends on neither order nor repetition. No move makes a cell smaller. */
  test('is the same in any order, any grouping and however often', () => {
    fc.assert(
      fc.property(anyCell, anyCell, anyCell, (a, b, c) => {
        expect(merge(a, b)).toBe(merge(b, a));
        expect(merge(merge(a, b), c)).toBe(merge(a, merge(b, c)));
        expect(merge(merge(a, b), b)).toBe(merge(a, b));
      }),
    );
  });

  test('prefers any settled cell to any open one', () => {
    fc.assert(
      fc.property(anyOpen, anySettled, (open, settled) => {
        expect(merge(open, settled)).toBe(settled);
      }),
    );
  });

  test('prefers the outcome with the better evidence, whatever the attempts and codes', () => {
    const ranked = fc.tuple(fc.nat(4), fc.nat(15), fc.nat(511));
    fc.assert(
      fc.property(ranked, ranked, ([rankA, ...a], [rankB, ...b]) => {
        const merged = merge(settle(sentOutcomes[rankA]!, ...a), settle(sentOutcomes[rankB]!, ...b));
        expect(readCell(merged).outcome).toBe(sentOutcomes[Math.max(rankA, rankB)]);
      }),
    );
  });
});

describe('an open id', () => {
  /** @invariant merge-is-max */
  test('never gets a smaller cell, so a merge never undoes a move', () => {
    fc.assert(
      fc.property(fc.array(anyMove, { maxLength: 600 }), (moves) => {
        const cells = walk(moves);
        for (const [i, cell] of cells.entries()) expect(cell).toBeGreaterThanOrEqual(cells[i - 1] ?? 0);
      }),
    );
  });

  test('stays open through 1,000 marks and keeps its attempts', () => {
    let cell = unmark(mark(untouched), 7, false);
    for (let i = 0; i < 1_000; i++) cell = unmark(mark(cell), countAttempts(cell), false);
    expect(isSettled(cell)).toBe(false);
    expect(countAttempts(cell)).toBe(7);
  });

  test('does not get a smaller one either when its marks come to their end: the 255th makes it doubtful, and stays', () => {
    let cell = untouched;
    for (let n = 1; n <= 300; n++) {
      const marked = mark(cell);
      const back = unmark(marked, 0, false);
      expect([n, marked >= cell && back >= marked]).toEqual([n, true]);
      expect([n, isDoubtful(back)]).toEqual([n, n >= 128]);
      cell = back;
    }
    expect(cell).toBe(0x1ff0);
  });

  test('is doubtful once it was marked while it was still marked', () => {
    fc.assert(
      fc.property(anyOpen.filter(isMarked), (cell) => {
        expect(isDoubtful(mark(cell))).toBe(true);
      }),
    );
  });

  test('is not doubtful after one mark, nor after a definite answer', () => {
    expect(isDoubtful(mark(untouched))).toBe(false);
    expect(isDoubtful(unmark(mark(untouched), 1, false))).toBe(false);
  });

  test('is doubtful after an ambiguous answer, and for good', () => {
    const cell = unmark(mark(untouched), 1, true);
    expect(isDoubtful(cell)).toBe(true);
    expect(isDoubtful(unmark(mark(cell), 2, false))).toBe(true);
  });

  test('is doubtful when its marks can no longer be counted', () => {
    let cell = untouched;
    for (let i = 0; i < 127; i++) cell = unmark(mark(cell), 0, false);
    expect(isDoubtful(cell)).toBe(false);
    expect(isDoubtful(mark(cell))).toBe(true);
  });

  test('is pending while its run goes on', () => {
    fc.assert(
      fc.property(anyOpen, (cell) => {
        expect(readCell(cell)).toEqual({ outcome: 'pending', status: null, code: '', attempts: cell & 15 });
      }),
    );
  });
});

describe('a settled id', () => {
  test('is always above every open one', () => {
    fc.assert(
      fc.property(anySettled, (cell) => {
        expect(isSettled(cell)).toBe(true);
      }),
    );
    expect(isSettled(0x1fff)).toBe(false);
  });

  test('keeps its outcome, attempts and status', () => {
    const anyStatus = fc.integer({ min: 200, max: 599 });
    fc.assert(
      fc.property(fc.constantFrom(...sentOutcomes), fc.nat(15), anyStatus, (outcome, attempts, status) => {
        const cell = settle(outcome, attempts, codeOfStatus(status));
        expect(cell).toBeLessThan(0xffff); // 0xFFFF means "no permit" in an update's answer
        expect(readCell(cell)).toEqual({ outcome, status, code: `http_${status}`, attempts });
        expect(readFinalCell(cell)).toEqual(readCell(cell));
      }),
    );
  });

  test('counts 15 attempts at most', () => {
    expect(countAttempts(settle('deleted', 40, codeOfStatus(204)))).toBe(15);
  });

  test('names a time-out', () => {
    expect(readCell(settle('unknown', 8, codeOfWord('timeout')))).toMatchObject({ code: 'timeout', status: null });
  });
});

describe('at finalization', () => {
  test.each([
    ['untouched', untouched, 'not_attempted'],
    ['marked: the request may be on its way', mark(untouched), 'unknown'],
    ['withdrawn unsent', unmark(mark(untouched), 0, false), 'not_attempted'],
    ['refused for now', unmark(mark(untouched), 2, false), 'failed'],
    ['ambiguously answered', unmark(mark(untouched), 2, true), 'unknown'],
    ['marked again', mark(unmark(mark(untouched), 2, false)), 'unknown'],
  ])('an id that was %s is settled', (_, cell, outcome) => {
    expect(readFinalCell(cell)).toMatchObject({ outcome, code: 'run_cancelled', status: null });
  });

  test('no id of a run in doubt was never sent, or is known to exist', () => {
    fc.assert(
      fc.property(anyCell, (cell) => {
        const fate = readFinalCell(cell, true);
        expect(fate).toEqual(isSettled(cell) ? readCell(cell) : expect.objectContaining({ outcome: 'unknown' }));
      }),
    );
  });

  /** @invariant rows-add-up */
  test('nothing stays pending', () => {
    fc.assert(
      fc.property(anyCell, (cell) => {
        expect(readFinalCell(cell).outcome).not.toBe('pending');
      }),
    );
  });
});

describe('what a holder reports', () => {
  const known = unmark(mark(untouched), 1, false);
  const of = (outcome: (typeof sentOutcomes)[number]) => settle(outcome, 2, codeOfStatus(404));

  test.each(sentOutcomes)('is taken for what it is: %s', (outcome) => {
    expect(mergeResult(known, of(outcome), true)).toBe(of(outcome));
  });

  test.each([
    ['failed', 'unknown'],
    ['unknown', 'unknown'],
    ['absent', 'gone_unconfirmed'],
    ['gone_unconfirmed', 'gone_unconfirmed'],
    ['deleted', 'deleted'],
  ] as const)('is less sure from one who lost the chunk: %s becomes %s', (outcome, learned) => {
    const { attempts, status, ...fate } = readCell(mergeResult(known, of(outcome), false));
    expect([fate.outcome, attempts, status]).toEqual([learned, 2, 404]);
  });

  test('never replaces better evidence', () => {
    expect(mergeResult(of('deleted'), of('absent'), true)).toBe(of('deleted'));
    expect(mergeResult(of('unknown'), of('failed'), false)).toBe(of('unknown'));
  });

  test('says of an open id nothing but its doubt, where it lost the chunk', () => {
    const [back, doubtfulBack] = [unmark(mark(known), 3, false), unmark(mark(known), 3, true)];
    expect(mergeResult(known, back, true)).toBe(back);
    expect(mergeResult(known, back, false)).toBe(known);
    expect(mergeResult(known, doubtfulBack, false)).toBe(known | 0x1000);
    expect(mergeResult(of('failed'), doubtfulBack, false)).toBe(of('failed'));
  });
});

describe('marks', () => {
  const markedTimes = (times: number) => {
    let cell = unmark(mark(untouched), 3, true);
    for (let n = 1; n < times; n++) cell = unmark(mark(cell), 3, false);
    return cell;
  };

  test.each([
    [untouched, 0],
    [mark(untouched), 1],
    [markedTimes(1), 1],
    [markedTimes(40), 40],
  ])('of %i were made %i times', (cell, times) => {
    expect(timesMarked(cell)).toBe(times);
  });

  test('are many from 128 on, of open ids', () => {
    expect(hasManyMarks(markedTimes(63))).toBe(false);
    expect(hasManyMarks(markedTimes(64))).toBe(true);
    expect(hasManyMarks(settle('deleted', 15, 511))).toBe(false);
  });

  test('that are counted anew are 16, and nothing else of the id changes', () => {
    const cell = resetMarks(markedTimes(64));
    expect([timesMarked(cell), countAttempts(cell), isDoubtful(cell)]).toEqual([8, 3, true]);
  });

  test.each([
    ['of one that may be on its way', mark(markedTimes(64))],
    ['that are 16', markedTimes(8)],
    ['that are fewer', markedTimes(2)],
    ['of a settled id', settle('deleted', 15, 511)],
  ])('%s are left as they are', (_, cell) => {
    expect(resetMarks(cell)).toBe(cell);
  });
});

test('indexes and cells are packed in two bytes each, in the order of the script', () => {
  expect([...packIndexes([0, 255, 256, 499])]).toEqual([0, 0, 0, 255, 1, 0, 1, 243]);
  expect([...packResults([{ index: 499, cell: 0xabcd }])]).toEqual([1, 243, 0xab, 0xcd]);
  expect(unpackCells(packIndexes([0, 255, 256, 0xffff]))).toEqual([0, 255, 256, 0xffff]);
});
