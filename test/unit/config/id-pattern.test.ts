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

  test.each([
    ['[0-9a-f]{24}', '507f1f77bcf86cd799439011', '507f1f77bcf86cd79943901'],
    ['[0-9a-f-]{36}', '550e8400-e29b-41d4-a716-446655440000', '550e8400-e29b-41d4-a716-4466554400001'],
    ['(?:ab){17}c', `${'ab'.repeat(17)}c`, `${'ab'.repeat(16)}c`],
    ['(?<part>a|b){20}', 'ab'.repeat(10), 'ab'.repeat(9)],
    ['a{17,}', 'a'.repeat(40), 'a'.repeat(16)],
    ['a{17,19}?b', `${'a'.repeat(19)}b`, `${'a'.repeat(20)}b`],
    ['(x[a-c]{18}){2}', `x${'a'.repeat(18)}`.repeat(2), `x${'a'.repeat(17)}`.repeat(2)],
    ['\\w{20}|[}{]{0,18}', '}'.repeat(18), '}'.repeat(19)],
    ['a{0}b{,3}', 'b{,3}', 'ab'],
    ['x{1}{', 'x{', 'x'],
  ])('%s, with any number of repetitions, holds for what it says and no more', (pattern, whole, other) => {
    const regex = compileIdPattern(pattern);
    expect([regex.test(whole), regex.test(other)]).toEqual([true, false]);
    expect([whole, other].map((id) => new RegExp(`^(?:${pattern})$`).test(id))).toEqual([true, false]);
  });

  test.each(['(a+)+', '(a{1,90}){20,}', '(a|aa)+', '([a-z]+)*\\d', '(x+x+)+y'])(
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
    ['(?<x>a)\\k<x>', /refers to a group or looks around/],
    ['(a)\\1', /refers to a group or looks around/],
    ['(?=a)b', /refers to a group or looks around/],
    ['\\p{L}+', /name the characters/],
    ['(a{1,1000}){1,1000}', /repeats too much/],
    ['a{99999}', /repeats too much/],
  ])('%s is refused', (pattern, words) => {
    expect(() => compileIdPattern(pattern)).toThrow(words);
  });
});
