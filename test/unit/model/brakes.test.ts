import { describe, expect, it, test } from 'vitest';
import {
  explainEmptyList,
  explainExcess,
  parseCanary,
  parseExpectedCount,
  parseMaxFailures,
  unexpectedCount,
} from '../../../src/model/brakes.ts';

describe('--canary', () => {
  it('takes rising numbers of ids', () => {
    expect([parseCanary('1,10,100'), parseCanary('5')]).toEqual([[1, 10, 100], [5]]);
  });

  it.each(['', '0', '10,1', '1,1', 'x', '1;2', '1,2,3,4,5,6,7,8,9', '-1', '1.5', '12345678'])(
    'refuses "%s"',
    (text) => {
      expect(() => parseCanary(text)).toThrow(`expected up to 8 rising numbers of ids like 1,10,100, got "${text}"`);
    },
  );
});

describe('--max-failures', () => {
  it('takes a number of ids or a share, in one form', () => {
    expect(['10', '007', '2.50%', '0', '0%', '100%'].map(parseMaxFailures)).toEqual([
      '10',
      '7',
      '2.5%',
      '0',
      '0%',
      '100%',
    ]);
  });

  it.each(['', '%', '1.5', '101%', '-1', 'ten', '1 %'])('refuses "%s"', (text) => {
    expect(() => parseMaxFailures(text)).toThrow('expected a number of ids like 10, or a share like 2.5%');
  });
});

test.each([
  ['250', 250, 250],
  ['250±5%', 238, 262],
  ['250+-5%', 238, 262],
  ['250 +/- 10', 240, 260],
  ['5±10', 0, 15],
])('--expect-count %s is a list of %i to %i ids', (text, least, most) => {
  const expected = parseExpectedCount(text);
  const reasons = [least - 1, least, most, most + 1].map((ids) => unexpectedCount(expected, ids));
  expect(reasons.map((reason) => reason === null)).toEqual([false, true, true, false]);
  expect(reasons[3]).toBe(`the list holds ${most + 1} ids, --expect-count is ${text}`);
});

test.each(['', 'x', '5±', '±5', '5%', '-5'])('--expect-count refuses "%s"', (text) => {
  expect(() => parseExpectedCount(text)).toThrow('expected a number of ids like 250000, 250000±5% or 250000+-100');
});

test.each([
  [0, false, 'the list is empty: 0 rows'],
  [0, true, null],
  [1, false, null],
  [1, true, null],
])('a list of %i rows, --allow-empty %s: %s', (rows, allowEmpty, reason) => {
  expect(explainEmptyList(rows, { allowEmpty })).toBe(reason);
});

test.each([
  [1_500, 1_499, false, 'the list holds 1,500 ids, --max-deletes allows 1,499'],
  [1_500, 1_499, true, null],
  [1_500, 1_500, false, null],
  [1_500, undefined, false, null],
  [0, 1, false, null],
])('a list of %i ids, --max-deletes %s, --partial %s: %s', (ids, maxDeletes, isPartial, reason) => {
  expect(explainExcess(ids, { maxDeletes, isPartial })).toBe(reason);
});
