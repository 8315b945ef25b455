import { describe, expect, test } from 'vitest';
import {
  codeOfStatus,
  codeOfWord,
  isSuccess,
  outcomes,
  resources,
  sentOutcomes,
  statusOfCode,
  textOfCode,
} from '../../../src/model/outcome.ts';

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
] as const)('a row that is %s needs nobody: %s', (outcome, isFine) => {
  expect(isSuccess(outcome)).toBe(isFine);
});

test('outcomes stand in the order of their evidence, which the cells in Redis rely on', () => {
  expect(sentOutcomes).toEqual(['failed', 'unknown', 'absent', 'gone_unconfirmed', 'deleted']);
});

test('every outcome that an id can be sent to is a word of the reports', () => {
  expect(outcomes).toEqual(expect.arrayContaining([...sentOutcomes]));
  expect(new Set(outcomes).size).toBe(9);
  expect(resources).toEqual(['annotations', 'views']);
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

  // Ledgers outlive a release: a number that changes its meaning would rewrite them.
  test.each([
    [0, 'none'],
    [1, 'timeout'],
    [2, 'reset'],
    [3, 'protocol'],
    [4, 'http_other'],
  ] as const)('has stored %i for %s since the first release', (number, word) => {
    expect(codeOfWord(word)).toBe(number);
    expect(textOfCode(number)).toBe(word);
  });

  test('shows the number of a code that a later release added', () => {
    expect(textOfCode(57)).toBe('code_57');
  });
});
