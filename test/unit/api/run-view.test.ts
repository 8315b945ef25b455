import { expect, it } from 'vitest';
import { estimateEnd } from '../../../src/api/run-view.ts';
import { parseRun } from '../../../src/ledger/run.ts';

const now = Date.parse('2026-11-26T12:00Z');

/** It deleted 2,000 ids at 20/s and has 1,000 left. */
const run = (more: Record<string, string>) =>
  parseRun('r1', {
    state: 'running',
    baseUrl: 'http://a',
    ids: '3000',
    settled: '2000',
    rows: '3000',
    activeMs: '100000',
    ...more,
  });

it.each([
  ['lies between the speed of now and that on average', {}, 50, 200],
  ['is no sooner than its rate allows, though it was faster before', { rate: '5/1000' }, 200, 200],
] as const)('the end of a run %s', (_, more, least, most) => {
  expect(estimateEnd(run(more), 5, now)).toEqual({ at_least_seconds: least, at_most_seconds: most });
});
