import { expect, test } from 'vitest';
import * as page from '../../../src/dashboard/format.ts';
import { plural } from '../../../src/format.ts';
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
])('the singular of %s is %s, on the terminal and on pages', (nouns, noun) => {
  expect(toSingular(nouns)).toBe(noun);
  expect([plural(1, nouns), page.plural(1, nouns)]).toEqual([`1 ${noun}`, `1 ${noun}`]);
});
