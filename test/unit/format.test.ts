import { describe, expect, it } from 'vitest';
import {
  count,
  duration,
  percent,
  plural,
  rate,
  roughly,
  timeInZone,
  timeLeft,
  timeOfDay,
  utcTime,
} from '../../src/format.ts';

describe('words', () => {
  it('groups the digits of a count', () => {
    expect([0, 999, 249_981].map(count)).toEqual(['0', '999', '249,981']);
  });

  it('drops the s of one', () => {
    expect([plural(1, 'views'), plural(1_203, 'views'), plural(0, 'views')]).toEqual([
      '1 view',
      '1,203 views',
      '0 views',
    ]);
  });

  it.each([
    [0, '0 s'],
    [400, '0.4 s'],
    [9_949, '9.9 s'],
    [9_951, '10 s'],
    [59_400, '59 s'],
    [59_600, '1 min'],
    [390_000, '6 min 30 s'],
    [3_600_000, '1 h'],
    [7_530_000, '2 h 5 min'],
    [273_600_000, '3 d 4 h'],
  ])('says %i ms as %s', (ms, words) => {
    expect(duration(ms)).toBe(words);
  });

  it.each([
    [0, '0/s'],
    [1_234.5, '1,235/s'],
    [398, '398/s'],
    [3.21, '3.2/s'],
    [0.2, '12/min'],
    [0.01, '36/h'],
  ])('says %f a second as %s', (perSecond, words) => {
    expect(rate(perSecond)).toBe(words);
  });

  it.each([
    [4, 'a few seconds left'],
    [44, '40–50 s left'],
    [389, '6–7 min left'],
    [4_000, '60–70 min left'],
    [9_000, '2–3 h left'],
    [200_000, '2–3 d left'],
  ])('says %i seconds left as a range', (seconds, words) => {
    expect(timeLeft(seconds)).toBe(words);
  });

  it('does not say 100 % before the last one', () => {
    expect([percent(999_999, 1_000_000), percent(1, 1), percent(0, 0)]).toEqual(['99.9 %', '100 %', '100 %']);
  });
});

describe('timeOfDay', () => {
  const now = new Date(2026, 10, 20, 16, 6, 7).getTime();

  it.each([
    [30, '16:06:37'],
    [-30, '16:05:37'],
    [7_200, '18:06'],
    [-7_200, '14:06'],
    [86_400, '21 Nov 16:06'],
  ])('says when %d s from now is', (seconds, text) => {
    expect(timeOfDay(now + seconds * 1_000, now)).toBe(text);
  });
});

describe('roughly', () => {
  it('names the largest unit alone', () => {
    expect([20_000, 90_000, 11_000_000, 200_000_000].map(roughly)).toEqual(['20 s', '1 min', '3 h', '2 d']);
  });
});

describe('utcTime', () => {
  it('shows a moment as precisely as asked, and names the zone where it shows a time', () => {
    const at = Date.UTC(2026, 10, 20, 16, 2, 41, 999);
    expect(utcTime(at, 'day')).toBe('2026-11-20');
    expect(utcTime(at, 'minute')).toBe('2026-11-20 16:02 UTC');
    expect(utcTime(at, 'second')).toBe('2026-11-20 16:02:41 UTC');
  });
});

describe('timeInZone', () => {
  it('gives the hour two digits in the morning, so that times line up', () => {
    const hours = Array.from({ length: 24 }, (_, hour) => timeInZone(new Date(2026, 1, 1, hour, 27, 19).getTime()));
    expect(hours).toEqual(hours.map(() => expect.stringMatching(/^\d\d:27:19 \S+$/)));
  });
});
