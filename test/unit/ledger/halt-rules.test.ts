import { expect, test } from 'vitest';
import type { IdState } from '../../../src/ledger/cell.ts';
import { counts, type HaltRule, ruleStatusesText } from '../../../src/ledger/halt-rules.ts';

const rule: HaltRule = {
  halt: 'forbidden',
  statuses: [
    [403, 403],
    [501, 505],
  ],
  reason: '',
};
const fate = (outcome: IdState['outcome'], status: number | null): IdState => ({
  outcome,
  status,
  code: '',
  attempts: 1,
});

test.each<[IdState['outcome'], number | null, boolean]>([
  ['failed', 403, true],
  ['failed', 402, false],
  ['failed', 404, false],
  ['unknown', 501, true],
  ['unknown', 505, true],
  ['unknown', 506, false],
  ['unknown', null, false],
  ['absent', 403, false],
  ['deleted', 403, false],
  ['gone_unconfirmed', 403, false],
])('an id that is %s by a %s counts: %s', (outcome, status, isCounted) => {
  expect(counts(rule, fate(outcome, status))).toBe(isCounted);
});

test('absent ids count for the rule of absence, whatever their status', () => {
  const absence: HaltRule = { ...rule, isAbsence: true };
  expect(counts(absence, fate('absent', 200))).toBe(true);
  expect(counts(absence, fate('failed', 403))).toBe(true);
  expect(counts(absence, fate('deleted', 204))).toBe(false);
});

test('statuses read as people write them', () => {
  expect(ruleStatusesText(rule)).toBe('403, 501-505');
});
