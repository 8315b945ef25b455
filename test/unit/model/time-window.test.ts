import { describe, expect, it, test } from 'vitest';
import { parseTimeWindow, timeWindowSetting, windowStateAt, windowTime } from '../../../src/model/time-window.ts';

const at = (text: string) => Date.parse(text);
const iso = (ms: number) => (Number.isFinite(ms) ? new Date(ms).toISOString().slice(0, 16) : 'never');

/** Whether a window is open at a moment, and its next changes. */
function changes(text: string, from: string, count: number): string[] {
  const window = parseTimeWindow(text);
  const first = windowStateAt(window, at(from));
  const found = [first];
  while (found.length < count) found.push(windowStateAt(window, found.at(-1)!.until));
  return found.map(({ isOpen, until }) => `${isOpen ? 'open' : 'closed'} until ${iso(until)}`);
}

describe('a window', () => {
  it('goes on over midnight, into a day that is not named', () => {
    expect(changes('Mon-Fri 22:00-06:00', '2026-11-26T12:00Z', 4)).toEqual([
      'closed until 2026-11-26T22:00',
      'open until 2026-11-27T06:00',
      'closed until 2026-11-27T22:00',
      'open until 2026-11-28T06:00', // Saturday morning
    ]);
    expect(changes('Mon-Fri 22:00-06:00', '2026-11-28T06:00Z', 1)).toEqual(['closed until 2026-11-30T22:00']);
  });

  it('goes on over the end of the week, and over its days', () => {
    expect(changes('Sat-Sun 23:00-01:00', '2026-11-29T23:30Z', 2)).toEqual([
      'open until 2026-11-30T01:00',
      'closed until 2026-12-05T23:00',
    ]);
    expect(changes('Fri-Mon 00:00-24:00', '2026-11-26T12:00Z', 2)).toEqual([
      'closed until 2026-11-27T00:00',
      'open until 2026-12-01T00:00',
    ]);
  });

  it('joins spans that touch or overlap', () => {
    expect(changes('08:00-12:00, 11:00-13:00,13:00-14:00', '2026-11-26T07:00Z', 2)).toEqual([
      'closed until 2026-11-26T08:00',
      'open until 2026-11-26T14:00',
    ]);
    expect(changes('00:00-24:00', '2026-11-26T07:00Z', 1)).toEqual(['open until never']);
  });

  it('follows the clocks of its zone', () => {
    expect(changes('22:00-06:00 Europe/Berlin', '2026-11-26T12:00Z', 2)).toEqual([
      'closed until 2026-11-26T21:00',
      'open until 2026-11-27T05:00',
    ]);
    expect(changes('22:00-06:00 Asia/Kathmandu', '2026-11-26T12:00Z', 1)).toEqual(['closed until 2026-11-26T16:15']);
  });

  it('is an hour shorter in the night in which the clocks go forward', () => {
    expect(changes('22:00-06:00 Europe/Berlin', '2027-03-27T12:00Z', 2)).toEqual([
      'closed until 2027-03-27T21:00',
      'open until 2027-03-28T04:00',
    ]);
    expect(changes('22:00-02:30 Europe/Berlin', '2027-03-27T22:00Z', 1)).toEqual(['open until 2027-03-28T01:00']);
    expect(changes('02:30-05:00 Europe/Berlin', '2027-03-27T22:00Z', 2)).toEqual([
      'closed until 2027-03-28T01:00', // 03:00 follows 01:59
      'open until 2027-03-28T03:00',
    ]);
  });

  it('does not open on the day on which its times are left out', () => {
    expect(changes('02:15-02:45 Europe/Berlin', '2027-03-27T12:00Z', 1)).toEqual(['closed until 2027-03-29T00:15']);
  });

  it('is an hour longer in the night in which the clocks go back', () => {
    expect(changes('22:00-06:00 America/New_York', '2027-11-06T12:00Z', 2)).toEqual([
      'closed until 2027-11-07T02:00',
      'open until 2027-11-07T11:00',
    ]);
  });

  it('never sends at a time that is not in it, though that comes twice', () => {
    expect(changes('22:00-02:30 Europe/Berlin', '2027-10-30T22:00Z', 4)).toEqual([
      'open until 2027-10-31T00:30', // 02:30, the first time
      'closed until 2027-10-31T01:00', // 02:00, the second time
      'open until 2027-10-31T01:30',
      'closed until 2027-10-31T21:00',
    ]);
  });

  it('tells the next change as a search minute by minute does', () => {
    for (const [text, start] of [
      ['Sat-Sun 01:30-03:30 Europe/Berlin', '2027-03-27T20:10Z'],
      ['Sun 02:10-02:50, 23:00-00:30 Europe/Berlin', '2027-10-30T20:10Z'],
      ['01:45-02:15 Australia/Lord_Howe', '2027-04-03T08:00Z'], // half an hour
    ] as const) {
      const window = parseTimeWindow(text);
      const minutes = Array.from({ length: 960 }, (_, n) => at(start) + n * 60_000);
      const open = minutes.map((minute) => windowStateAt(window, minute).isOpen);
      const searched = minutes.filter((_, n) => n > 0 && open[n] !== open[n - 1]);
      const told: number[] = [];
      for (let from = at(start); from <= minutes.at(-1)!; from = told.at(-1)!)
        told.push(windowStateAt(window, from).until);
      expect([text, ...told.slice(0, -1).map(iso)]).toEqual([text, ...searched.map(iso)]);
    }
  });
});

test('a window is told by its own clocks', () => {
  expect(windowTime(parseTimeWindow('Mon 22:00-06:00 Europe/Berlin'), at('2026-11-30T21:00Z'))).toBe(
    'Mon 22:00 Europe/Berlin',
  );
});

test('a window has one normal form', () => {
  expect(timeWindowSetting('  Mon-Fri  22:00-06:00 ,Sat 08:00-24:00   Europe/Berlin ')).toBe(
    'Mon-Fri 22:00-06:00, Sat 08:00-24:00 Europe/Berlin',
  );
  expect(timeWindowSetting('always')).toBe('always');
});

test.each([
  '',
  '22:00',
  '22:00-22:00',
  '24:00-06:00',
  '22:00-25:00',
  '22:60-23:00',
  'Foo 22:00-23:00',
  'Mon-Fri',
  '22-06',
])('a window is not "%s"', (text) => {
  expect(() => timeWindowSetting(text)).toThrow(
    `expected times like "Mon-Fri 22:00-06:00 Europe/Berlin", got "${text}"`,
  );
});

test('a window needs a zone that there is', () => {
  expect(() => timeWindowSetting('22:00-06:00 Europe/Bonn')).toThrow('"Europe/Bonn" is not a time zone');
});
