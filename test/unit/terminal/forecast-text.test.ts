import { describe, expect, it } from 'vitest';
import { forecast, type Work } from '../../../src/model/forecast.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { parseTimeWindow } from '../../../src/model/time-window.ts';
import { forecastFacts, forecastText, zonedTime } from '../../../src/terminal/forecast-text.ts';
import { unboundWork } from '../model/works.ts';

const now = Date.parse('2026-11-26T12:00Z'); // a Thursday
const dayMs = 86_400_000;
const work = unboundWork(100_000);
const learned = { perSecond: 83, silentMs: 0, isLimit: true };
const made = (given: Partial<Work>) => forecast({ ...work, ...given }, now);

describe('forecastText', () => {
  it.each([
    ['nothing is known', {}, 'not known before the first requests: no rate is set, and none was learned'],
    [
      'only --rate is known',
      { rate: parseRate('200/s') },
      'at least 8 min 20 s at the 200/s of --rate, longer if the API is slower; ends Thu 12:08 UTC at the earliest',
    ],
    ['a limit was learned', { learned }, 'about 20 min 5 s at the 83/s learned just now; ends Thu 12:20 UTC'],
    [
      'it was learned long ago',
      { learned: { ...learned, silentMs: 3 * dayMs } },
      '13 min 23 s to 30 min 7 s at the 83/s learned 3 d ago; ends about Thu 12:20 UTC',
    ],
    [
      'it was never refused',
      { learned: { ...learned, isLimit: false } },
      'at most 23 min 6 s at the 83/s up to which nothing was refused, less if the API allows more; ends Thu 12:23 UTC at the latest',
    ],
    [
      'its target has a limit',
      { learned, limit: 20 },
      'about 1 h 23 min at the 20/s of the limit of the target; ends Thu 13:23 UTC',
    ],
    [
      'a quota is smaller than the list',
      { learned, rate: parseRate('100/s,50000/day') },
      'about 1 d at the 83/s learned just now; waits for a quota; ends Fri 12:34 UTC',
    ],
    [
      'only a quota is known',
      { quotas: [{ count: 50_000, perMs: dayMs, used: 0 }] },
      'at least 1 d, longer if the API is slower; waits for a quota; ends Fri 12:00 UTC at the earliest',
    ],
    [
      'it has a window',
      { learned, window: parseTimeWindow('22:00-22:10 Europe/Berlin') },
      '1 d 9 h to 2 d 9 h at the 83/s learned just now; in 3 windows; ends about Sat 22:00 Europe/Berlin',
    ],
    [
      'it pauses before its end',
      { learned, maxActiveMs: 600_000 },
      'about 10 min at the 83/s learned just now; pauses Thu 12:10 UTC, when 49,800 ids are sent',
    ],
    ['it is short', { learned, requests: 830 }, 'about 10 s at the 83/s learned just now'],
  ])('says how long it takes, why, and when it ends: %s', (_, given, text) => {
    expect(forecastText(made(given), 'UTC')).toBe(text);
  });
});

describe('forecastFacts', () => {
  it('has seconds and moments', () => {
    expect(forecastFacts(made({ learned, requests: 8_300 }))).toEqual({
      seconds: 100,
      seconds_from: 87,
      seconds_to: 115,
      ends_at: '2026-11-26T12:01:39.987Z',
      ends_from: expect.any(String),
      ends_to: expect.any(String),
      per_second: 83,
      fits: null,
      because: ['at the 83/s learned just now'],
    });
  });

  it('has no number for what is not known', () => {
    const unknown = { seconds: null, seconds_to: null, ends_at: null, ends_to: null, per_second: null, because: [] };
    expect(forecastFacts(made({}))).toMatchObject(unknown);
  });
});

describe('zonedTime', () => {
  it.each([
    [0, 'Thu 13:00 Europe/Berlin'],
    [7 * dayMs, 'Thu 3 Dec 13:00 Europe/Berlin'],
    [365 * dayMs, 'Fri 26 Nov 2027 13:00 Europe/Berlin'],
  ])('has the date where the day of the week is not enough', (ms, text) => {
    expect(zonedTime(now + ms, now, 'Europe/Berlin')).toBe(text);
  });
});
