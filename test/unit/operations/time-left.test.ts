import { expect, it } from 'vitest';
import { parseRun } from '../../../src/ledger/run.ts';
import { estimateSecondsLeft } from '../../../src/operations/time-left.ts';

const now = Date.parse('2026-11-26T12:00Z');
const day = 86_400;
const run = (more: Record<string, string>) =>
  parseRun('r1', { state: 'running', baseUrl: 'http://a', ids: '500', settled: '250', rows: '500', ...more });
const seen = { perSecond: 10, limiter: null };
const limit = { count: 250, perMs: day * 1_000, used: 250, freeAt: now + 80_000_000 };

it.each([
  ['is what is left by the speed of now', {}, seen, 25],
  ['is unknown without a speed', {}, { ...seen, perSecond: 0 }, null],
  ['is none of a run that is paused', { state: 'paused' }, seen, null],
  ['is a day where the limit is used up', {}, { ...seen, quotas: [limit] }, 80_025],
  ['is until the next day where its own quota is spent', spent(), { ...seen, perSecond: 0 }, 3_602.5],
  ['is a day where what is left is more than its quota', { rate: '100/1000,300/86400000' }, seen, day],
  ['goes on where its window opens', { window: '13:00-14:00' }, seen, 3_625],
  ['goes on at its start', { startsAt: String(now + 3_600_000) }, seen, 3_625],
] as const)('the time left %s', (_, more, given, seconds) => {
  const found = estimateSecondsLeft(run(more), given, now);
  if (seconds === null) expect(found).toBeNull();
  else expect(found! / seconds).toBeCloseTo(1, 1);
});

/** Its quota of an hour is spent, and free again in an hour. */
function spent() {
  return { rate: '100/1000,250/3600000', quotaUntil: String(now + 3_600_000) };
}
