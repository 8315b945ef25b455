import { describe, expect, it } from 'vitest';
import { requireShownCount } from '../../../src/api/run-routes.ts';
import { parseRun, type RunState } from '../../../src/ledger/run.ts';

/** A run with this many ids left. */
function runWith(state: RunState, left: number) {
  return parseRun('r', { state, rows: '100', deleted: String(100 - left) });
}

function isAllowed(state: RunState, left: number, typed: { left: number; shown: number }): boolean {
  try {
    requireShownCount(runWith(state, left), typed);
    return true;
  } catch {
    return false;
  }
}

describe('a cancel', () => {
  it.each<[string, RunState, number, number, number, boolean]>([
    ['is for the number that was shown, as it is', 'paused', 40, 40, 40, true],
    ['is for a number that became smaller since, while the run goes on', 'running', 40, 50, 50, true],
    ['is for one that became smaller by the last answers of a paused run', 'paused', 40, 50, 50, true],
    ['is not for a number below what is left', 'running', 40, 30, 30, false],
    ['is not for more rows than the run has', 'halted', 40, 101, 101, false],
    ['is not for another number than was shown', 'running', 40, 40, 50, false],
    ['needs no number for a run that has ended', 'completed', 0, 7, 9, true],
  ])('%s', (_, state, now, left, shown, allowed) => {
    expect(isAllowed(state, now, { left, shown })).toBe(allowed);
  });
});
