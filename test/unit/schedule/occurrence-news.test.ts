import { describe, expect, it } from 'vitest';
import { findNews, occurrencesInARow } from '../../../src/schedule/occurrence-news.ts';
import type { HistoryEntry } from '../../../src/schedule/schedule.ts';
import { minute, noon } from './schedules.ts';

type Line = [outcome: HistoryEntry['outcome'], occurrences?: number, minutesLater?: number];

function line([outcome, occurrences = 1]: Line, at: number): HistoryEntry {
  const none = { reason: '', by: '', run: '', rows: null, retried: 0, carriedOver: 0, ended: null };
  return { occurrence: at, occurrences, at, outcome, ...none };
}

/** What is told of each line in turn, a minute after the one before. */
function told(lines: readonly Line[]): string[] {
  let history: HistoryEntry[] = [];
  let at = noon;
  return lines.map((one) => {
    at += (one[2] ?? 1) * minute;
    const entry = line(one, at);
    const news = findNews(history, entry);
    history = [entry, ...history];
    return news === null ? '' : `${news.is} ${news.occurrences}`;
  });
}

const day = 24 * 60;

describe('of the occurrences of a schedule it is told', () => {
  it.each<[string, Line[], string[]]>([
    ['nothing while they go well', [['started'], ['started']], ['', '']],
    [
      'once that the source fails, until it gives a list again',
      [['started'], ['failed'], ['failed'], ['started'], ['failed']],
      ['', 'failed 1', '', 'recovered 2', 'failed 1'],
    ],
    [
      'no second time after occurrences that were missed or skipped meanwhile',
      [['failed'], ['missed', 3], ['skipped'], ['failed']],
      ['failed 1', 'missed 3', 'skipped 1', ''],
    ],
    [
      'that a source gives lists again, also if there is nothing in them',
      [['failed'], ['empty'], ['empty']],
      ['failed 1', 'recovered 1', ''],
    ],
    ['no end by a guard, which tells by itself', [['failed'], ['refused'], ['started']], ['failed 1', '', '']],
    [
      'how many were missed, once for a stretch',
      [['missed', 12], ['missed', 2], ['started'], ['missed', 1, 61], ['started'], ['missed', 5, 61]],
      ['missed 12', '', '', 'missed 1', '', 'missed 5'],
    ],
    [
      'not each time that it misses some while it reads a list',
      [['missed', 2], ['started'], ['missed', 2], ['started'], ['missed', 2], ['started'], ['missed', 3]],
      ['missed 2', '', '', '', '', '', 'missed 3'],
    ],
    [
      'not each time that a run takes longer than usual, but where more occurrences than then are skipped',
      [['started'], ['skipped'], ['started'], ['skipped'], ['started'], ['skipped'], ['skipped'], ['skipped']],
      ['', 'skipped 1', '', '', '', '', 'skipped 2', ''],
    ],
    [
      'that a run of a schedule of every day took longer, if that was not so in the last week',
      [
        ['skipped', 1, day],
        ['started', 1, 7 * day],
        ['skipped', 1, day],
      ],
      ['skipped 1', '', 'skipped 1'],
    ],
    [
      'that nothing is there, but not at each occurrence between two files of a week',
      [
        ['empty', 1, day],
        ['empty', 5, day],
        ['started', 1, day],
        ['empty', 1, day],
        ['empty', 5, day],
        ['empty', 1, day],
      ],
      ['empty 1', '', '', '', '', 'empty 7'],
    ],
  ])('%s', (_, lines, expected) => {
    expect(told(lines)).toEqual(expected);
  });
});

it('the occurrences that failed are counted from the last one that went well, whatever came between', () => {
  const lines: Line[] = [['failed', 2], ['missed'], ['failed', 3], ['started'], ['failed']];
  expect(
    occurrencesInARow(
      lines.map((one) => line(one, noon)),
      'failed',
    ),
  ).toBe(5);
  expect(occurrencesInARow([], 'failed')).toBe(0);
});
