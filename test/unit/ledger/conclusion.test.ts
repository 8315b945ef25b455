import { describe, expect, test } from 'vitest';
import { conclusionText, judgeRun, wentWell } from '../../../src/ledger/conclusion.ts';
import { isFinalized, parseRun, runStates } from '../../../src/ledger/run.ts';
import { toExitCode } from '../../../src/ledger/summary.ts';
import { type Outcome, outcomes } from '../../../src/model/outcome.ts';

type Conclusion = ReturnType<typeof judgeRun>;

/** A run of two rows, both with this outcome; rows that are settled while they are read are no ids of the run. */
function runOf(outcome: Outcome, more: Record<string, string | number>) {
  const ids = ['rejected', 'duplicate', 'protected'].includes(outcome) ? 0 : 2;
  return runWith({ rows: 2, ids, [outcome]: 2, ...more });
}

function runWith(hash: Record<string, string | number>) {
  const fields = Object.entries(hash).map(([field, value]) => [field, String(value)]);
  return parseRun('20261120-1602-m4tz', { tallied: '1', ...Object.fromEntries(fields) });
}

/** What a finalized run whose rows all had one outcome came to: without --expect-absent, and with it. */
const alike: Record<Outcome, readonly [Conclusion, Conclusion]> = {
  deleted: ['well', 'well'],
  absent: ['none_there', 'well'],
  gone_unconfirmed: ['well', 'well'], // our own requests may have deleted them
  failed: ['left', 'left'],
  unknown: ['none_there', 'left'],
  not_attempted: ['left', 'left'],
  rejected: ['left', 'left'],
  duplicate: ['well', 'well'],
  protected: ['well', 'well'],
};

const exits: Record<NonNullable<Conclusion>, number> = { well: 0, left: 3, none_there: 3, mismatch: 1 };

describe('what a run came to', () => {
  const cases = outcomes.flatMap((outcome) =>
    runStates.flatMap((state) => [0, 1].map((expectAbsent) => [outcome, state, expectAbsent] as const)),
  );

  /** @invariant one-conclusion: For a schedule, a receiver and a page, a run went well exactly if its exit code is 0. */
  test.each(cases)('if all rows are %s, the run is %s and --expect-absent is %i', (outcome, state, expectAbsent) => {
    const run = runOf(outcome, { state, expectAbsent });
    const conclusion = isFinalized(state) ? alike[outcome][expectAbsent]! : null;
    expect(judgeRun(run)).toBe(conclusion);
    expect(wentWell(run)).toBe(conclusion === 'well');
    if (conclusion !== null) expect(toExitCode(run)).toBe(exits[conclusion]);
    else expect(toExitCode(run)).not.toBe(0);
  });

  test.each<[string, Record<string, number | string>, Conclusion]>([
    ['one of them was deleted', { rows: 3, ids: 3, absent: 2, deleted: 1 }, 'well'],
    ['one of them failed', { rows: 3, ids: 3, absent: 2, failed: 1 }, 'left'],
    ['one may have been deleted by us', { rows: 2, ids: 2, absent: 1, gone_unconfirmed: 1 }, 'none_there'],
    [
      'other rows were protected or duplicate',
      { rows: 4, ids: 2, absent: 2, protected: 1, duplicate: 1 },
      'none_there',
    ],
    ['other rows were rejected', { rows: 3, ids: 2, absent: 2, rejected: 1 }, 'none_there'],
    ['a row is in no counter', { rows: 3, ids: 3, absent: 2 }, 'mismatch'],
    [
      'a row is in no counter, and absent ids are expected',
      { rows: 3, ids: 3, absent: 2, expectAbsent: 1 },
      'mismatch',
    ],
  ])('of absent ids, where %s', (_, counts, conclusion) => {
    expect(judgeRun(runWith({ state: 'completed', ...counts }))).toBe(conclusion);
  });

  test.each([
    [0, 'left'], // the tally that counts its open ids comes later
    [1, 'mismatch'],
  ] as const)('a cancelled run with open ids, tallied %i, is %s', (tallied, conclusion) => {
    expect(judgeRun(runWith({ state: 'cancelled', rows: 2, ids: 2, deleted: 1, tallied }))).toBe(conclusion);
  });
});

test.each([
  ['well', ''],
  ['left', ''],
  ['none_there', 'nothing shows that any of its ids was there'],
  ['mismatch', 'its counts do not add up'],
  [null, ''],
] as const)('a run that is %s says "%s"', (conclusion, words) => {
  expect(conclusionText(conclusion)).toBe(words);
});
