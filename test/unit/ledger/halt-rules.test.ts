import { expect, test } from 'vitest';
import type { IdState } from '../../../src/ledger/cell.ts';
import { describeHalts, isUnexpected } from '../../../src/ledger/halt-rules.ts';
import { refusalOf } from '../../../src/ledger/thresholds.ts';
import { isRefusal } from '../../../src/model/status.ts';

const fate = (outcome: IdState['outcome'], status: number | null): IdState => ({
  outcome,
  status,
  code: '',
  attempts: 1,
});

test.each<[IdState['outcome'], number | null, boolean]>([
  ['unknown', 200, true],
  ['unknown', 399, true],
  ['unknown', 406, true],
  ['failed', 302, true],
  ['unknown', 404, false],
  ['unknown', null, false],
  ['absent', 200, false],
  ['deleted', 200, false],
  ['gone_unconfirmed', 302, false],
])('an id that is %s by a %s has an unexpected answer: %s', (outcome, status, isCounted) => {
  expect(isUnexpected(fate(outcome, status))).toBe(isCounted);
});

test('a streak of any refusal has a halt of its own kind, and an id that is absent has the one of absence', () => {
  const statuses = [...Array(600).keys()].filter(isRefusal);
  const halts = new Set(statuses.map((status) => refusalOf(status, false).halt));
  expect([...halts].sort()).toEqual(['all_absent', 'forbidden', 'refused', 'wrong_endpoint']);
  expect(refusalOf(418, false).halt).toBe('refused');
  for (const status of statuses) expect(refusalOf(status, true).halt).toBe('all_absent');
});

test('the halts read as people write them', () => {
  expect(describeHalts().map(({ halt, when, answer }) => `${halt}: ${when}, ${answer}`)).toEqual([
    'unexpected_answers: 3 ids, 200-399, 406 other than a success',
    'all_absent: 20 ids in a row, 404, 410',
    'forbidden: 20 ids in a row, 403',
    'wrong_endpoint: 20 ids in a row, 405, 415, 501, 505',
    'refused: 20 ids in a row, any other of 400-499',
  ]);
});
