import { expect, test } from 'vitest';
import { hasAllOf, type Keeper } from '../../../src/redis/keeper.ts';

const keeper = (process: string, isDurable: boolean | null = false, ancestors: string[] = []): Keeper => ({
  process,
  isDurable,
  ancestors,
});

test.each([
  ['it is the same process', keeper('a'), keeper('a'), true],
  ['another one', keeper('b'), keeper('a'), false],
  ['both flush always', keeper('b', true), keeper('a', true), true],
  ['only the one before did', keeper('b', false), keeper('a', true), false],
  ['only the one after does', keeper('b', true), keeper('a', false), false],
  ['nobody may see how it flushes', keeper('b', null), keeper('a', null), false],
  ['it took over from one that ended in order', keeper('c', false, ['b', 'a']), keeper('a'), true],
  ['it took over from others only', keeper('c', false, ['b']), keeper('a'), false],
])('a process has all that another one had acknowledged: %s', (_, now, before, expected) => {
  expect(hasAllOf(now, before)).toBe(expected);
});
