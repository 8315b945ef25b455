import { expect, test } from 'vitest';
import { plural } from '../../../src/model/numbers.ts';
import { toSingular } from '../../../src/model/singular.ts';

test.each([
  ['annotations', 'annotation'],
  ['dashboards', 'dashboard'],
  ['queries', 'query'],
  ['movies', 'movie'],
  ['addresses', 'address'],
  ['processes', 'process'],
  ['statuses', 'status'],
  ['boxes', 'box'],
  ['branches', 'branch'],
  ['caches', 'cache'],
  ['alert-rules', 'alert-rule'],
  // These have no s to lose.
  ['status', 'status'],
  ['analysis', 'analysis'],
  ['news', 'news'],
  ['breaking-news', 'breaking-news'],
  ['s', 's'],
  ['a', 'a'],
])('the singular of %s is %s', (nouns, noun) => {
  expect(toSingular(nouns)).toBe(noun);
  expect(plural(1, nouns)).toBe(`1 ${noun}`);
});
