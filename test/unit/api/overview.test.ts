import { expect, it } from 'vitest';
import { runSummary } from '../../../src/api/overview.ts';
import { parseRun } from '../../../src/ledger/run.ts';

const now = Date.parse('2026-11-26T12:00Z');

/** It has 1,000 ids left. */
const run = (more: Record<string, string>) =>
  parseRun('r1', { state: 'running', baseUrl: 'http://a', ids: '3000', settled: '2000', rows: '3000', ...more });

it.each([
  ['is that at its speed', {}, 200],
  ['includes the wait for its window', { window: '13:00-14:00 UTC' }, 3_800],
  ['is unknown while it is paused', { state: 'paused' }, null],
])('the time left of a listed run %s', (_, more, seconds) => {
  expect(runSummary(run(more), now, { perSecond: 5 }).seconds_left).toBe(seconds);
});

it('the time left of a run is what was estimated by all that bounds it, if that is known', () => {
  expect(runSummary(run({}), now, { perSecond: 5, secondsLeft: 86_400 }).seconds_left).toBe(86_400);
  expect(runSummary(run({}), now, { perSecond: 5, secondsLeft: Number.POSITIVE_INFINITY }).seconds_left).toBeNull();
});
