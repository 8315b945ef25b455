import { describe, expect, test } from 'vitest';
import { codeOfStatus, codeOfWord, statusOfCode, textOfCode } from '../../../src/model/outcome.ts';

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
