import { describe, expect, it } from 'vitest';
import { noShapes, type ShapeProfile } from '../../../src/input/id-shapes.ts';
import type { ProtectedList } from '../../../src/input/spool.ts';
import { findRejection, withRows } from '../../../src/schedule/guards.ts';
import { aSchedule } from './schedules.ts';

const list = {
  rows: 50,
  ids: 50,
  sha256: 'new',
  protectedList: null as ProtectedList | null,
  nearMiss: null as string | null,
  protected: 0,
  unmatched: 0,
  limited: false,
  shapes: noShapes as ShapeProfile,
  left: 0,
  sends: 50,
};
const before = { lastRun: 'r1', lastSha256: 'old', lastState: 'completed' as const, rows: [10, 20, 30] };
const refused = (facts: Partial<typeof list>, more: Parameters<typeof aSchedule>[0] = {}) =>
  findRejection({ ...list, ...facts }, aSchedule({ ...before, ...more }));

describe('the guards of a schedule', () => {
  it('let a usual list pass', () => {
    expect(refused({})).toBeNull();
  });

  it('refuse more ids than --max-deletes, whatever was waived', () => {
    const reason = 'the list holds 101 ids, --max-deletes allows 100';
    expect(refused({ sends: 101 })).toEqual({ guard: 'too_many', reason });
    expect(refused({ sends: 101 }, { waived: 'too_many' })).toEqual({ guard: 'too_many', reason });
  });

  it('refuse another number of ids than --expect-count', () => {
    const settings = { maxDeletes: '100', expectCount: '40±10%' };
    expect(refused({ ids: 44 }, { settings })).toBeNull();
    const reason = 'the list holds 45 ids, --expect-count is 40±10%';
    expect(refused({ ids: 45 }, { settings })).toEqual({ guard: 'unexpected_count', reason });
    expect(refused({ ids: 45 }, { settings, waived: 'unexpected_count' })).toBeNull();
  });

  it('refuse a few ids that look unlike all others, unless they are allowed', () => {
    const shape = { count: 49, like: '1001', file: 'ids.csv', line: 1, isOdd: false };
    const shapes = {
      shapes: [shape, { ...shape, count: 1, like: 'Total', line: 50, isOdd: true }],
      odd: 1,
      pattern: '[0-9]{4}',
      length: null,
    };
    expect(refused({ shapes })).toMatchObject({
      guard: 'odd_ids',
      reason: expect.stringContaining('"Total" in ids.csv:50'),
    });
    expect(refused({ shapes }, { waived: 'odd_ids' })).toBeNull();
    expect(refused({ shapes }, { settings: { maxDeletes: '100', allowMixedIds: 'true' } })).toBeNull();
  });

  it('refuse an empty list, unless it is allowed', () => {
    expect(refused({ rows: 0, ids: 0 })).toEqual({ guard: 'empty', reason: 'the list is empty: 0 rows' });
    expect(refused({ rows: 0, ids: 0 }, { settings: { maxDeletes: '100', allowEmpty: 'true' } })).toBeNull();
  });

  it('refuse the list of the last run, if that came to its end', () => {
    const reason = 'the list is the same as last time, in run r1';
    expect(refused({ sha256: 'old' })).toEqual({ guard: 'same', reason });
    expect(refused({ sha256: 'old' }, { lastState: 'cancelled' })).toBeNull();
    expect(refused({ sha256: 'old' }, { lastConclusion: 'left' })).toEqual({ guard: 'same', reason });
    expect(refused({ sha256: 'old' }, { lastConclusion: 'none_there' })).toBeNull(); // it was paused for that already
  });

  it('refuse more rows than k × the median of the last lists, once there are three', () => {
    const reason = 'the list has 61 rows, more than 3 × the usual 20 (median of the last 3)';
    expect(refused({ rows: 60 })).toBeNull();
    expect(refused({ rows: 61 })).toEqual({ guard: 'growth', reason });
    expect(refused({ rows: 61 }, { maxGrowth: 4 })).toBeNull();
    expect(refused({ rows: 61 }, { rows: [1, 1] })).toBeNull();
  });

  it('let a list pass the one that was waived, and no other', () => {
    expect(refused({ rows: 61 }, { waived: 'growth' })).toBeNull();
    expect(refused({ rows: 61, sha256: 'old' }, { waived: 'growth' })).toMatchObject({ guard: 'same' });
  });

  it('compare with the last ten lists', () => {
    expect(withRows([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});
