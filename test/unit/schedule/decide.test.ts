import { describe, expect, it } from 'vitest';
import { decide, type LiveRun } from '../../../src/schedule/decide.ts';
import { aSchedule, minute, noon } from './schedules.ts';

const live: LiveRun = { id: 'r1', state: 'running', reason: '', halt: '' };
const [one, three] = [noon + minute, noon + 3 * minute];

describe('a schedule', () => {
  it('does nothing before its occurrence, and makes a run at it', () => {
    expect(decide(aSchedule(), null, one - 1)).toEqual({ do: 'nothing' });
    expect(decide(aSchedule(), null, one)).toEqual({ do: 'run', occurrence: one, missed: 0 });
  });

  it.each(['paused', 'removed'] as const)('that is %s does nothing', (state) => {
    expect(decide(aSchedule({ state, waiting: one }), null, three)).toEqual({ do: 'nothing' });
  });

  it('makes one run of several occurrences', () => {
    expect(decide(aSchedule(), null, three + 5_000)).toEqual({ do: 'run', occurrence: three, missed: 2 });
  });

  it('is paused by a run that is halted, also before its occurrence', () => {
    const halted: LiveRun = { id: 'r1', state: 'halted', reason: 'all ids answered 403', halt: 'forbidden' };
    const reason = 'its run r1 is halted: all ids answered 403';
    expect(decide(aSchedule(), halted, noon)).toEqual({ do: 'pause', halt: 'forbidden', reason });
  });

  it('leaves out occurrences that are later than its longest delay, unless the latest missed one is wanted', () => {
    const schedule = aSchedule({ maxDelayMs: 1_000 });
    const now = three + 1_001;
    expect(decide(schedule, null, three + 1_000)).toMatchObject({ do: 'run' });
    expect(decide(schedule, null, now)).toEqual({
      do: 'miss',
      occurrence: three,
      occurrences: 3,
      lateMs: 1_001,
      hadWaited: false,
    });
    expect(decide({ ...schedule, missed: 'latest' }, null, now)).toEqual({ do: 'run', occurrence: three, missed: 2 });
  });

  it('does not take an occurrence for late that had to wait for a run', () => {
    const schedule = aSchedule({ maxDelayMs: 1_000, after: one, waiting: one, lastEndedAt: one + 50_000 });
    expect(decide(schedule, null, one + 50_900)).toEqual({ do: 'run', occurrence: one, missed: 0 });
    expect(decide(schedule, null, one + 52_000)).toMatchObject({
      do: 'miss',
      occurrence: one,
      occurrences: 1,
      hadWaited: true,
    });
  });
});

describe('while the last run has not ended', () => {
  it('skip leaves the occurrence out', () => {
    expect(decide(aSchedule(), live, one)).toEqual({
      do: 'skip',
      occurrence: one,
      occurrences: 1,
      reason: 'run r1 has not ended',
    });
  });

  it.each(['planned', 'paused', 'cancelling'] as const)('and is %s, it counts as well', (state) => {
    expect(decide(aSchedule(), { ...live, state }, one)).toMatchObject({ do: 'skip' });
  });
});
