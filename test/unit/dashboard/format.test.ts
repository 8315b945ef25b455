import { describe, expect, it } from 'vitest';
import * as page from '../../../src/dashboard/format.ts';

describe('what a command says', () => {
  it.each([
    ['Deleting at 60/s, as --rate allows.', 'Deleting at 60/s, as “rate” allows.'],
    [
      'Check --base-url, --resource; resume with --expect-absent',
      'Check “base url”, “resource”; resume with “expect absent”',
    ],
    ['an id like a--b, or --', 'an id like a--b, or --'],
  ])('has no flags on a page: %s', (text, words) => {
    expect(page.withoutFlags(text)).toBe(words);
  });
});

describe('the numbers of the pages', () => {
  it.each([
    [{ least: 1, most: 14 }, 'a few seconds'],
    [{ least: 54, most: 82 }, '54–82 s'],
    [{ least: 110, most: 121 }, 'about 2 min'],
    [{ least: 360, most: 490 }, '6–8 min'],
    [{ least: 5_000, most: 9_000 }, '1–3 h'],
  ])('tell how much time is left as a range: %o is %s', (left, text) => {
    expect(page.leftText(left)).toBe(text);
  });
});

describe('the times of the pages', () => {
  it.each([
    ['Europe/Berlin', '2026-01-05', 'Europe/Berlin, UTC+1'],
    ['Europe/Berlin', '2026-07-05', 'Europe/Berlin, UTC+2'],
    ['UTC', '2026-07-05', 'UTC'],
  ])('are in the zone of the reader: %s in %s is %s', (name, day, text) => {
    expect(page.zone(name, new Date(day))).toBe(text);
  });

  it('have a date on another day, and a year in another year', () => {
    const at = (year: number, month: number, day: number) => new Date(year, month, day, 15).getTime();
    const texts = [at(2026, 10, 22), at(2026, 10, 21), at(2025, 10, 22)].map((ms) => page.clock(ms, at(2026, 10, 22)));
    expect(texts).toEqual(['15:00', '21 Nov 15:00', '22 Nov 2025 15:00']);
  });
});
