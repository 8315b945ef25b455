import { describe, expect, it } from 'vitest';
import { previewOccurrences } from '../../../src/schedule/describe-occurrences.ts';
import { checkTiming, dueOccurrences, nextOccurrence, nextOccurrences } from '../../../src/schedule/occurrences.ts';
import { sized } from '../../support/size.ts';

const preview = (cron: string, tz: string, after: string, count: number) =>
  previewOccurrences({ cron, tz }, Date.parse(after), count).map(({ local, note }) =>
    note ? `${local} (${note})` : local,
  );

describe('a preview', () => {
  it.each([
    [
      'in New York moves a time that the clocks jump over',
      ['30 2 * * *', 'America/New_York', '2027-03-13T12:00Z'],
      ['Sun 2027-03-14 03:30 EDT (02:30 does not exist that day)', 'Mon 2027-03-15 02:30 EDT'],
    ],
    [
      'in Berlin moves a time that the clocks jump over',
      ['30 2 * * *', 'Europe/Berlin', '2027-03-27T12:00Z'],
      ['Sun 2027-03-28 03:30 CEST (02:30 does not exist that day)', 'Mon 2027-03-29 02:30 CEST'],
    ],
    [
      'in New York has a time that comes twice once',
      ['30 1 * * *', 'America/New_York', '2027-11-06T12:00Z'],
      [
        'Sun 2027-11-07 01:30 EDT (01:30 comes twice that day, this is the first and the only run)',
        'Mon 2027-11-08 01:30 EST',
      ],
    ],
    [
      'in Berlin has a time that comes twice once',
      ['30 2 * * *', 'Europe/Berlin', '2027-10-30T12:00Z'],
      [
        'Sun 2027-10-31 02:30 CEST (02:30 comes twice that day, this is the first and the only run)',
        'Mon 2027-11-01 02:30 CET',
      ],
    ],
    [
      'goes through both hours where the pattern names every hour',
      ['*/30 * * * *', 'Europe/Berlin', '2027-10-31T00:10Z'],
      [
        'Sun 2027-10-31 02:30 CEST (02:30 comes twice that day, this is the first)',
        'Sun 2027-10-31 02:00 CET (02:00 comes twice that day, this is the second)',
        'Sun 2027-10-31 02:30 CET (02:30 comes twice that day, this is the second)',
        'Sun 2027-10-31 03:00 CET',
      ],
    ],
    [
      'tells at the first occurrence behind it what the clocks left out',
      ['*/30 * * * *', 'America/New_York', '2027-03-14T06:10Z'],
      [
        'Sun 2027-03-14 01:30 EST',
        'Sun 2027-03-14 03:00 EDT (02:00 and 02:30 do not exist that day)',
        'Sun 2027-03-14 03:30 EDT',
      ],
    ],
    [
      'joins two times that a clock change makes one',
      ['0 2,3 * * *', 'Europe/Berlin', '2027-03-27T22:00Z'],
      ['Sun 2027-03-28 03:00 CEST (02:00 does not exist that day)', 'Mon 2027-03-29 02:00 CEST'],
    ],
    [
      'says nothing where the clocks change at another time',
      ['0 4 * * *', 'Europe/Berlin', '2027-03-27T12:00Z'],
      ['Sun 2027-03-28 04:00 CEST', 'Mon 2027-03-29 04:00 CEST'],
    ],
    [
      'moves a time by the half hour that is missing',
      ['0 2 * * *', 'Australia/Lord_Howe', '2027-10-02T00:00Z'],
      ['Sun 2027-10-03 02:30 LHDT (02:00 does not exist that day)', 'Mon 2027-10-04 02:00 LHDT'],
    ],
    [
      'moves a midnight that the clocks jump over',
      ['0 0 * * *', 'Africa/Cairo', '2027-04-29T12:00Z'],
      ['Fri 2027-04-30 01:00 EEST (00:00 does not exist that day)', 'Sat 2027-05-01 00:00 EEST'],
    ],
    [
      'names the day of a time that moves into the next one',
      ['30 23 * * *', 'America/Nuuk', '2027-03-27T12:00Z'],
      ['Sun 2027-03-28 00:30 GMT-1 (23:30 does not exist on Sat 2027-03-27)', 'Sun 2027-03-28 23:30 GMT-1'],
    ],
    ['in UTC is plain', ['0 3 * * *', 'UTC', '2027-03-28T00:00Z'], ['Sun 2027-03-28 03:00 UTC']],
  ])('%s', (_, [cron, tz, after], lines) => {
    expect(preview(cron!, tz!, after!, lines.length)).toEqual(lines);
  });

  it.each(['America/New_York', 'Europe/Berlin'])('in %s has one occurrence a day through both changes', (tz) => {
    const day = new Intl.DateTimeFormat('en-CA', { timeZone: tz });
    for (const [from, count] of [
      ['2027-03-12T12:00Z', 18],
      ['2027-10-29T12:00Z', 12],
    ] as const) {
      for (const hour of [1, 2]) {
        const occurrences = nextOccurrences({ cron: `30 ${hour} * * *`, tz }, Date.parse(from), count);
        expect(new Set(occurrences.map((occurrence) => day.format(occurrence))).size).toBe(count);
      }
    }
  });
});

describe('occurrences that are due', () => {
  const nightly = { cron: '0 3 * * *', tz: 'UTC' };
  const at = (text: string) => Date.parse(text);

  it('are none before the next one comes', () => {
    expect(dueOccurrences(nightly, at('2027-01-01T03:00Z'), at('2027-01-02T02:59Z'))).toBeNull();
  });

  it('are counted, and the latest of them is known', () => {
    const due = dueOccurrences(nightly, at('2027-01-01T03:00Z'), at('2027-01-04T12:00Z'));
    expect(due).toEqual({ latest: at('2027-01-04T03:00Z'), count: 3 });
  });

  it('are found in bounded time also where a schedule of seconds was left alone for years', () => {
    const due = dueOccurrences(
      { cron: '* * * * * *', tz: 'UTC' },
      at('2020-01-01T00:00Z'),
      at('2027-01-01T00:00:00.500Z'),
    );
    expect(due).toEqual({ latest: at('2027-01-01T00:00Z'), count: 1_000 });
  });

  it('are found where the occurrences of years stand together', () => {
    const cron = `*/${sized(3, 1)} * 1 1 *`;
    const due = dueOccurrences({ cron, tz: 'UTC' }, at('2020-01-01T00:00Z'), at('2026-12-24T00:00Z'));
    expect(due?.latest).toBe(at(`2026-01-01T23:${sized(57, 59)}Z`));
  });
});

describe('a pattern', () => {
  it.each([
    ['0 3 * *', 'UTC', 'expected five fields'],
    ['', 'UTC', 'got none'],
    ['61 * * * *', 'UTC', 'never matches a time'],
    ['0 0 30 2 *', 'UTC', 'never matches a time'],
    ['H 3 * * *', 'UTC', 'H is not supported'],
    ['0 3 * * *', 'Europe/Berln', '"Europe/Berln" is not a time zone'],
  ])('of "%s" in %s is refused', (cron, tz, words) => {
    expect(() => checkTiming({ cron, tz })).toThrow(words);
  });

  it.each(['0 3 * * *', '@daily', '*/5 * * * * *', '0 0 29 2 *', '0 3 L * *', '0 3 * * MON-FRI'])(
    'of "%s" is taken',
    (cron) => {
      expect(() => checkTiming({ cron, tz: 'Europe/Berlin' })).not.toThrow();
    },
  );
});

/** What the clocks of a zone show, in minutes since 1970. */
function shownAt(clock: Intl.DateTimeFormat, at: number): number {
  const part = Object.fromEntries(clock.formatToParts(at).map(({ type, value }) => [type, value]));
  return Date.parse(`${part.year}-${part.month}-${part.day}T${part.hour}:${part.minute}Z`) / minute;
}

const minute = 60_000;

/** What the clocks of a zone show in a stretch of time → when they show it first; minute by minute, without any calculation with zones. */
function lookAtClocks(tz: string, from: number, to: number): Map<number, number> {
  const fields = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const;
  const clock = new Intl.DateTimeFormat('en-GB', { timeZone: tz, hourCycle: 'h23', ...fields });
  const found = new Map<number, number>();
  let before = shownAt(clock, from - minute);
  for (let at = from; at <= to; at += minute) {
    const now = shownAt(clock, at);
    for (let shown = before + 1; shown < now; shown++) found.set(shown, at + (shown - before - 1) * minute);
    if (!found.has(now)) found.set(now, at);
    before = now;
  }
  return found;
}

/** When the times of a day come. */
function occurrencesByLooking(found: Map<number, number>, isTime: (minuteOfDay: number) => boolean): number[] {
  const occurrences = [...found].filter(([shown]) => isTime(((shown % 1_440) + 1_440) % 1_440)).map(([, at]) => at);
  return [...new Set(occurrences)].sort((a, b) => a - b);
}

describe('around a change of the clocks', () => {
  it.each([
    ['Africa/Cairo', '2027-04-30'],
    ['Africa/Cairo', '2027-10-29'],
    ['Australia/Lord_Howe', '2027-10-03'],
    ['Australia/Lord_Howe', '2027-04-04'],
    ['America/Santiago', '2027-09-05'],
    ['America/Santiago', '2027-04-04'],
    ['America/Havana', '2027-03-14'],
    ['Asia/Beirut', '2027-03-28'],
    ['America/Nuuk', '2027-03-28'],
    ['Antarctica/Troll', '2027-03-28'],
    ['Europe/Berlin', '2027-03-28'],
    ['Europe/Berlin', '2027-10-31'],
    ['Africa/Casablanca', '2027-02-07'],
    ['Pacific/Apia', '2011-12-30'],
  ])('in %s on %s each time of a pattern has one occurrence, moved on where it does not exist', (tz, day) => {
    const [from, to] = [Date.parse(day) - 36 * 3_600_000, Date.parse(day) + 36 * 3_600_000];
    const clocks = lookAtClocks(tz, from, to);
    const step = sized(407, 41) * minute;
    for (const [minutes, hours] of [
      [[0], [0]],
      [[30], [0]],
      [
        [15, 45],
        [1, 2, 3],
      ],
      [
        [0, 20, 40],
        [0, 1, 22, 23],
      ],
      [[59], [23]],
    ] as const) {
      const timing = { cron: `${minutes} ${hours} * * *`, tz };
      const isTime = (at: number) =>
        minutes.includes((at % 60) as never) && hours.includes(Math.floor(at / 60) as never);
      const occurrences = occurrencesByLooking(clocks, isTime);
      for (let after = from; after < occurrences.at(-1)!; after += step)
        expect([after, nextOccurrence(timing, after)]).toEqual([
          after,
          occurrences.find((occurrence) => occurrence > after),
        ]);
    }
  });

  it('a pattern that names every hour goes on as the clocks do, also where half an hour is missing or comes twice', () => {
    const at = (from: string, count: number) =>
      nextOccurrences({ cron: '*/20 * * * *', tz: 'Australia/Lord_Howe' }, Date.parse(from), count).map((occurrence) =>
        new Date(occurrence).toISOString().slice(11, 16),
      );
    expect(at('2027-10-02T15:00Z', 4)).toEqual(['15:10', '15:40', '16:00', '16:20']); // 01:40, 02:40, 03:00, 03:20
    expect(at('2027-04-03T14:30Z', 4)).toEqual(['14:40', '15:10', '15:30', '15:50']); // 01:40, 01:40, 02:00, 02:20
  });
});
