import { describe, expect, test } from 'vitest';
import { isSettled, readCell, settle } from '../../../src/ledger/cell.ts';
import { countPending, parseRun } from '../../../src/ledger/run.ts';
import { toExitCode, toSummary } from '../../../src/ledger/summary.ts';
import { sumInWords } from '../../../src/ledger/tally.ts';
import {
  codeOfStatus,
  codeOfWord,
  idOutcomes,
  inDoubt,
  isAlwaysShown,
  isFailure,
  isGone,
  isSuccess,
  isUncertain,
  isWorthAnotherRun,
  outcomes,
  outcomeText,
  rankOf,
  sentOutcomes,
  statusOfCode,
  sumOutcomes,
  textOfCode,
} from '../../../src/model/outcome.ts';
import { FailureGroups } from '../../../src/report/run-files.ts';
import { panelText } from '../../../src/terminal/panel.ts';
import { noCounts, snapshot } from '../terminal/snapshots.ts';

describe.each(outcomes)('a row that ended %s', (outcome) => {
  const counts = { ...noCounts, [outcome]: 2 };

  test('is counted wherever rows are', () => {
    const run = parseRun('r', { state: 'completed', rows: '5', ids: '5', [outcome]: '2' });
    expect(run.counts).toEqual(counts);
    expect(countPending(run)).toBe(3);
    expect(toSummary(run, 0, 0)).toMatchObject(counts);
    expect(sumOutcomes(counts)).toBe(2);
    expect(sumInWords({ counts, pending: 3 })).toBe(`5 rows = 2 ${outcome} + 3 pending`);
  });

  test('makes the exit code 0 if it needs nobody, and stands in a group of failures if it does', () => {
    const run = parseRun('r', { state: 'completed', rows: '2', ids: '9', [outcome]: '2' });
    const groups = new FailureGroups();
    groups.add({ outcome, code: 'c', id: 'a' } as never);
    expect([toExitCode(run), groups.list().length]).toEqual(isSuccess(outcome) ? [0, 0] : [3, 1]);
  });

  test('is shown with what it means, in the panel if it was to be sent', () => {
    expect(outcomeText(outcome)).toMatch(/\w/);
    expect(panelText(snapshot({ counts }), 200).includes(`${outcome} 2`)).toBe(idOutcomes.includes(outcome));
  });
});

describe('the outcomes of requests', () => {
  test('count their ranks from 1 without a gap, and no further than a cell can hold', () => {
    expect(sentOutcomes.map(rankOf)).toEqual(sentOutcomes.map((_, i) => i + 1));
    expect(sentOutcomes.length).toBeLessThan(8);
  });

  test('rank by their evidence: nothing replaces deleted, and a failure replaces no success', () => {
    expect(sentOutcomes.at(-1)).toBe('deleted');
    expect(sentOutcomes.findLastIndex(isFailure)).toBeLessThan(sentOutcomes.findIndex(isSuccess));
  });

  test('are all in doubt after a request that may have been executed, but for deleted', () => {
    expect(sentOutcomes.filter((outcome) => inDoubt(outcome) === outcome && !isUncertain(outcome))).toEqual([
      'deleted',
    ]);
  });

  test.each(sentOutcomes)('%s is read from a cell as it was written', (outcome) => {
    const cell = settle(outcome, 3, codeOfStatus(204));
    expect([isSettled(cell), cell < 2 ** 16]).toEqual([true, true]);
    expect(readCell(cell)).toEqual({ outcome, status: 204, code: 'http_204', attempts: 3 });
  });

  test.each(sentOutcomes)(
    '%s in doubt does not rank lower, needs the same attention, and is as unsure as can be',
    (sure) => {
      const unsure = inDoubt(sure);
      expect(rankOf(unsure)).toBeGreaterThanOrEqual(rankOf(sure));
      expect(isSuccess(unsure)).toBe(isSuccess(sure));
      expect(inDoubt(unsure)).toBe(unsure);
      expect(isUncertain(unsure) || unsure === sure).toBe(true);
    },
  );

  test('are worth another run unless they are a success; what was settled while reading never is', () => {
    expect(sentOutcomes.filter((outcome) => isWorthAnotherRun(outcome) === isSuccess(outcome))).toEqual([]);
    expect(outcomes.filter((outcome) => isWorthAnotherRun(outcome) && !idOutcomes.includes(outcome))).toEqual([]);
    expect(isWorthAnotherRun('not_attempted')).toBe(true);
    expect([isFailure('pending'), isWorthAnotherRun('pending'), isFailure('not_attempted')]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('code', () => {
  test('keeps every status from 200 to 599 in 9 bits', () => {
    for (let status = 200; status <= 599; status++) {
      expect(codeOfStatus(status)).toBeLessThan(512);
      expect(statusOfCode(codeOfStatus(status))).toBe(status);
      expect(textOfCode(codeOfStatus(status))).toBe(`http_${status}`);
    }
  });

  test.each([0, 100, 199, 600, 999])('calls status %i http_other', (status) => {
    expect(textOfCode(codeOfStatus(status))).toBe('http_other');
    expect(statusOfCode(codeOfStatus(status))).toBeNull();
  });

  // Ledgers outlive a version of expunge: a number that changes its meaning would rewrite them.
  test.each([
    [0, 'none'],
    [1, 'timeout'],
    [2, 'reset'],
    [3, 'protocol'],
    [4, 'http_other'],
  ] as const)('has stored %i for %s since the first version', (number, word) => {
    expect(codeOfWord(word)).toBe(number);
    expect(textOfCode(number)).toBe(word);
  });

  test('shows the number of a code that a later version added', () => {
    expect(textOfCode(57)).toBe('code_57');
  });
});

test.each([
  ['deleted', true],
  ['absent', true],
  ['gone_unconfirmed', true],
  ['duplicate', true],
  ['protected', true],
  ['failed', false],
  ['unknown', false],
  ['not_attempted', false],
  ['rejected', false],
] as const)('a row that is %s is a success: %s', (outcome, isGood) => {
  expect(isSuccess(outcome)).toBe(isGood);
});

test('an outcome is uncertain where another one becomes it in doubt', () => {
  expect(outcomes.filter(isUncertain)).toEqual(['gone_unconfirmed', 'unknown']);
});

test('an object is gone without our own confirmed delete where it was absent, or may have been deleted', () => {
  expect(outcomes.filter(isGone)).toEqual(['absent', 'gone_unconfirmed']);
});

test('progress shows what was deleted, absent or failed even where there is none', () => {
  expect(outcomes.filter(isAlwaysShown)).toEqual(['deleted', 'absent', 'failed']);
});
