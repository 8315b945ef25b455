import { describe, expect, test } from 'vitest';
import { parseRun } from '../../../src/ledger/run.ts';
import { checkConservation, sumInWords, type Tally } from '../../../src/ledger/tally.ts';

describe('conservation', () => {
  function run(hash: Record<string, string | number>) {
    const fields = Object.entries(hash).map(([field, value]) => [field, String(value)]);
    return parseRun('r', Object.fromEntries(fields));
  }

  function tally(counts: Partial<Tally['counts']>, more: Partial<Tally> = {}): Tally {
    return { counts: { ...run({}).counts, ...counts }, pending: 0, attempts: 0, badCodes: [], broken: [], ...more };
  }

  describe('a ledger adds up', () => {
    /**
     * @invariant rows-add-up: The number of rows equals all outcomes + `pending`. The counters equal a scan of the ledger. After
     * finalization `pending` is 0.
     */
    test('when every row has one outcome and the counters agree', () => {
      const completed = run({ state: 'completed', rows: 3, deleted: 2, rejected: 1, attempts: 2 });
      expect(checkConservation(completed, tally({ deleted: 2, rejected: 1 }, { attempts: 2 }))).toBeNull();
    });

    test('of a cancelled run before its open ids are counted', () => {
      const cancelled = run({ state: 'cancelled', rows: 3, ids: 3, settled: 3, deleted: 2 });
      expect(checkConservation(cancelled, tally({ deleted: 2 }, { pending: 1 }))).toBeNull();
    });

    test('while a run goes on and its counters are already old', () => {
      const going = run({ state: 'running', rows: 10, ids: 10, settled: 4, deleted: 4 });
      expect(checkConservation(going, tally({ deleted: 7 }, { pending: 3 }))).toBeNull();
    });
  });

  describe('a ledger does not add up', () => {
    test.each([
      [
        'a row is missing',
        { state: 'completed', rows: 3, deleted: 3 },
        tally({ deleted: 2 }),
        'had 3 rows, the ledger holds 2',
      ],
      [
        'a counter differs',
        { state: 'completed', rows: 1, deleted: 1 },
        tally({ failed: 1 }),
        'deleted: 1 counted, 0 in the ledger',
      ],
      [
        'attempts differ',
        { state: 'completed', rows: 1, deleted: 1, attempts: 9 },
        tally({ deleted: 1 }),
        'attempts: 9 counted',
      ],
      [
        'a settled id is open again',
        { state: 'paused', rows: 2, ids: 2, settled: 2, deleted: 2 },
        tally({ deleted: 1 }, { pending: 1 }),
        '0 ids were pending, 1 are open',
      ],
      [
        'a counter of a cancelled run differs once its open ids are counted',
        { state: 'cancelled', rows: 1, not_attempted: 1, tallied: 1 },
        tally({ failed: 1 }),
        'failed: 0 counted, 1 in the ledger; not_attempted: 1 counted, 0 in the ledger',
      ],
      [
        'a chunk is broken',
        { state: 'running' },
        tally({}, { broken: ['ledger chunk 3 is missing'] }),
        'ledger chunk 3',
      ],
    ])('when %s', (_, fields, found, words) => {
      expect(checkConservation(run(fields), found)).toContain(words);
    });
  });

  test('puts the sum in words, without what is zero', () => {
    expect(sumInWords(tally({}))).toBe('0 rows = 0');
    expect(sumInWords(tally({ deleted: 12_000, failed: 40 }, { pending: 305 }))).toBe(
      '12,345 rows = 12,000 deleted + 40 failed + 305 pending',
    );
  });
});
