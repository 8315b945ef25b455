import { expect, test } from 'vitest';
import { hasAllOf, type ServerIdentity } from '../../../src/redis/server-identity.ts';

const identity = (process: string, isDurable: boolean | null = false, ancestors: string[] = []): ServerIdentity => ({
  process,
  isDurable,
  ancestors,
});

test.each([
  ['it is the same process', identity('a'), identity('a'), true],
  ['another one', identity('b'), identity('a'), false],
  ['both flush always', identity('b', true), identity('a', true), true],
  ['only the one before did', identity('b', false), identity('a', true), false],
  ['only the one after does', identity('b', true), identity('a', false), false],
  ['nobody may see how it flushes', identity('b', null), identity('a', null), false],
  ['it took over from one that ended in order', identity('c', false, ['b', 'a']), identity('a'), true],
  ['it took over from others only', identity('c', false, ['b']), identity('a'), false],
])('a process has all that another one had acknowledged: %s', (_, now, before, expected) => {
  expect(hasAllOf(now, before)).toBe(expected);
});
