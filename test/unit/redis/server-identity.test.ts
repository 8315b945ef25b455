import { expect, test } from 'vitest';
import { hasAllOf, type ServerIdentity } from '../../../src/redis/server-identity.ts';

const identity = (process: string, isDurable: boolean | null = false, ancestors: string[] = []): ServerIdentity => ({
  process,
  history: '',
  isDurable,
  ancestors,
});

const promoted = (process: string, history: string, isDurable = false): ServerIdentity => ({
  ...identity(process, isDurable),
  history,
});

test.each([
  ['it is the same process', identity('a'), identity('a'), true],
  ['it is the same process, promoted since', promoted('a', 'x'), identity('a'), false],
  ['it is the same process, promoted since and flushing always', promoted('a', 'x', true), identity('a', true), false],
  ['it is the same process, promoted for the second time', promoted('a', 'y'), promoted('a', 'x'), false],
  ['it is the same process, promoted before both', promoted('a', 'x'), promoted('a', 'x'), true],
  ['it is the same process, which forgot how it was promoted', identity('a'), promoted('a', 'x'), true],
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
