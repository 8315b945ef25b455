import { describe, expect, test } from 'vitest';
import { compileIdPattern } from '../../../src/config/id-pattern.ts';

describe('a pattern for ids', () => {
  test('holds for whole ids, also with alternatives', () => {
    const pattern = compileIdPattern('a-[0-9]{6}|v-[0-9]{6}');
    expect(['a-000001', 'v-000001', 'a-0000011', 'xa-000001', 'a-000001\n'].map((id) => pattern.test(id))).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  test.each(['(a+)+', '(a|aa)+', '([a-z]+)*\\d', '(x+x+)+y'])(
    '%s takes no more than a moment for any id',
    (pattern) => {
      const regex = compileIdPattern(pattern);
      expect(regex.test(`${'a'.repeat(1_023)}!`)).toBe(false);
      expect(regex.test(`${'x'.repeat(1_023)}!`)).toBe(false);
    },
  );

  test.each([
    ['(', /unterminated group/i],
    ['[z-a]', /out of order/i],
    ['(a)\\1', /refers to a group or looks around/],
    ['(?=a)b', /refers to a group or looks around/],
    ['\\p{L}+', /name the characters/],
    ['(a{1,1000}){1,1000}', /repeats too much/],
    ['a{9999}', /repeats too much/],
  ])('%s is refused', (pattern, words) => {
    expect(() => compileIdPattern(pattern)).toThrow(words);
  });
});
