import { describe, expect, it } from 'vitest';
import { targetOf } from '../../../src/model/target.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import type { HistoryEntry, RunEnd } from '../../../src/schedule/schedule.ts';
import { listText, steeredText } from '../../../src/terminal/schedule-text.ts';
import { aSchedule, minute, noon } from '../schedule/schedules.ts';

const telling = { toType: toTypeAnywhere };

const target = targetOf('https://api.example.com', '');
const entry: HistoryEntry = {
  occurrence: noon,
  occurrences: 1,
  at: noon,
  outcome: 'refused',
  reason: 'the list is empty: 0 rows',
  by: 'root@worker-1',
  run: '',
  rows: 0,
  retried: 0,
  carriedOver: 0,
  ended: null,
};

const pausedAtNoon = { state: 'paused', changedAt: noon } as const;

describe('the list of schedules', () => {
  it('names the guard that paused one, and no login of a worker', () => {
    const schedule = aSchedule({ ...pausedAtNoon, pausedBy: 'empty', reason: 'the list is empty: 0 rows' });
    const text = listText([{ schedule, history: [entry] }], target, noon + 5 * minute, telling);
    expect(text).toContain('nightly was paused 5 min ago by its guard "empty": the list is empty: 0 rows');
    expect(text).not.toContain('root');
  });

  it('names the operator who paused one', () => {
    const schedule = aSchedule({ ...pausedAtNoon, who: 'ana@desk', reason: 'an audit' });
    const text = listText([{ schedule, history: [] }], target, noon + 5 * minute, telling);
    expect(text).toContain('nightly was paused 5 min ago by ana@desk: an audit');
  });
});

it('a schedule whose run found none of its ids is told how to accept that, and how to go on', () => {
  const schedule = aSchedule({ ...pausedAtNoon, pausedBy: 'none_there', reason: 'none of its 3 ids was there' });
  const [text, quiet] = [false, true].map((isQuiet) =>
    listText([{ schedule, history: [] }], target, noon + 5 * minute, { toType: toTypeAnywhere, isQuiet }),
  );
  const accept = '    If its ids may be gone: expunge schedule add nightly … --expect-absent --replace';
  expect(text).toContain(`none of its 3 ids was there\n${accept}\n    Resume: expunge schedule resume nightly`);
  expect(quiet).not.toContain('expunge schedule');
});

it('a schedule whose source has failed more than once says how often', () => {
  const failed = { ...entry, outcome: 'failed', reason: 'source nightly: it answers 500' } as const;
  const text = (history: HistoryEntry[]) => listText([{ schedule: aSchedule(), history }], target, noon, telling);
  const words = 'has had no complete list in 4 occurrences since the last successful one';
  expect(text([{ ...failed, occurrences: 3 }, { ...entry, outcome: 'missed' }, failed])).toContain(
    `  nightly ${words}`,
  );
  expect(text([failed])).not.toContain('has had no complete list');
});

describe('the last occurrences of a schedule', () => {
  const lastOf = (more: Partial<HistoryEntry>) =>
    listText([{ schedule: aSchedule(), history: [{ ...entry, ...more }] }], target, noon, telling);

  it('that found nothing to do say so, and are no trouble', () => {
    const text = lastOf({ outcome: 'empty', occurrences: 24, reason: 'no file is there (/in/*.csv)' });
    expect(text).toContain('nothing to do in 24 occurrences: no file is there (/in/*.csv)');
  });

  it('that had a run say what has changed of the protected ids', () => {
    const text = lastOf({ outcome: 'started', run: 'r1', rows: 30, reason: 'the protected ids have changed' });
    expect(text).toContain('run r1, 30 rows; the protected ids have changed');
  });

  it.each<[RunEnd['conclusion'], [deleted: number, gone: number, left: number], string]>([
    ['well', [1_200, 3, 0], 'completed: 1,200 deleted, 3 gone (r1)'],
    ['well', [5, 0, 0], 'completed: 5 deleted (r1)'],
    ['well', [0, 3, 0], 'completed: 0 deleted, 3 gone (r1)'], // with --expect-absent
    ['left', [5, 0, 2], 'completed: 5 deleted, 2 not (r1)'],
    ['none_there', [0, 3, 0], 'completed, but nothing shows that any of its ids was there (r1)'],
    ['none_there', [0, 1, 2], 'completed, but nothing shows that any of its ids was there (r1)'],
    ['mismatch', [2, 1, 0], 'completed, but its counts do not add up (r1)'],
  ])('that had a run which is %s of %j say "%s"', (conclusion, [deleted, gone, left], words) => {
    const ended = { state: 'completed', conclusion, deleted, gone, left } as const;
    expect(lastOf({ outcome: 'started', run: 'r1', ended })).toContain(words);
  });
});

describe('a resumed schedule', () => {
  it.each([
    ['growth', true],
    ['protected', true],
    ['too_many', false],
    ['halted', false],
    ['none_there', false],
    ['', false],
  ] as const)('that the guard "%s" had paused is told whether the next list passes it', (pausedBy, passes) => {
    const words = 'The next list passes the guard that paused it';
    expect(steeredText('resume', aSchedule({ pausedBy, state: 'paused' }), noon, telling).includes(words)).toBe(passes);
  });
});

it('an action that changes nothing of a schedule says so', () => {
  expect(steeredText('pause', aSchedule({ state: 'paused' }), noon, telling)).toContain('was paused already');
  expect(steeredText('resume', aSchedule({ state: 'active' }), noon, telling)).toContain('was active already');
  expect(steeredText('pause', aSchedule({ state: 'active' }), noon, telling)).toContain('Paused schedule');
});
