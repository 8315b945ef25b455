import { describe, expect, it } from 'vitest';
import { forecast, forecastEnd, timeToSend, type Work } from '../../../src/model/forecast.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { parseTimeWindow } from '../../../src/model/time-window.ts';
import { unboundWork } from './works.ts';

const noon = Date.parse('2026-11-26T12:00Z'); // a Thursday
const hour = 3_600;
const day = 24 * hour;

const work = unboundWork(10_000);

const at = (given: Partial<Work>, now = noon) => forecast({ ...work, ...given }, now);
const fresh = { perSecond: 100, silentMs: 0, isLimit: true };

describe('forecast', () => {
  it('knows no time without a rate', () => {
    expect(at({})).toMatchObject({ seconds: null, secondsFrom: 0, secondsTo: null, causes: ['unknown'] });
  });

  it('says only how long it takes at least where the API may be slower than --rate', () => {
    const { seconds, secondsFrom, secondsTo, causes } = at({ rate: parseRate('200/s') });
    expect([seconds, secondsTo, causes]).toEqual([null, null, ['rate']]);
    expect(secondsFrom).toBeCloseTo(50, 1);
  });

  it.each([
    ['200/s', 1_000, 5],
    ['200/s,100000/day', 100_000, 500],
    ['200/s,100000/day', 250_000, 2 * day + 250],
    ['200/s,100000000/day', 1_000, 5],
    ['200/s,100/min,1000/h', 0, 0],
  ])('takes with %s for %d requests at least %d seconds', (rate, requests, seconds) => {
    expect(at({ rate: parseRate(rate), requests }).secondsFrom).toBeCloseTo(seconds, 1);
  });

  it.each([
    ['what was learned', {}, 100, 'learned'],
    ['--rate', { rate: parseRate('50/s') }, 50, 'rate'],
    ['a higher --rate', { rate: parseRate('500/s') }, 100, 'learned'],
    ['the limit of the target', { rate: parseRate('50/s'), limit: 20 }, 20, 'limit'],
  ])('is made with the lowest rate that is known: %s', (_, given, perSecond, cause) => {
    const found = at({ learned: fresh, ...given });
    expect(found).toMatchObject({ perSecond, causes: [cause] });
    expect(found.seconds).toBeCloseTo(10_000 / perSecond, 0);
  });

  it('is within 15 % of a limit that was learned today, and says less for an older one', () => {
    const now = at({ learned: fresh });
    const old = at({ learned: { ...fresh, silentMs: 3 * day * 1_000 } });
    expect(now.secondsFrom).toBeCloseTo(100 / 1.15, 0);
    expect(now.secondsTo).toBeCloseTo(115, 0);
    expect([old.secondsFrom, old.secondsTo].map((seconds) => Math.round(seconds!))).toEqual([67, 150]);
  });

  it('says only how long it takes at most where the learned rate was never refused', () => {
    const learned = { ...fresh, isLimit: false };
    expect(at({ learned })).toMatchObject({ seconds: null, secondsFrom: 0, perSecond: expect.closeTo(100 / 1.15) });
    const bounded = at({ learned, rate: parseRate('200/s') });
    expect(bounded.secondsFrom).toBeCloseTo(50, 0);
    expect(bounded.secondsTo).toBeCloseTo(115, 0);
  });

  it.each([
    ['a quota of a day', 250, '100/s,100/day', [], 2 * day],
    ['a quota that is as large as the list', 100, '100/s,100/day', [], 0],
    ['a quota that is one smaller than the list', 101, '100/s,100/day', [], day],
    ['several quotas', 250, '100/s,50/h,100/day', [], 2 * day],
    ['the shorter of several', 250, '100/s,50/h,1000/day', [], 4 * hour],
    ['a quota', 250, '100/s', [{ count: 100, perMs: day * 1_000, used: 0 }], 2 * day],
    ['a quota that is partly used', 100, '100/s', [{ count: 100, perMs: hour * 1_000, used: 60 }], hour],
    ['a quota that is used up, and free at a known time', 100, '100/s', [spent(600)], 600],
    ['a quota above the list', 40, '100/s', [{ count: 100, perMs: hour * 1_000, used: 60 }], 0],
    ['one request a day', 3, '1/day', [], 2 * day],
  ])('waits for %s', (_, requests, rate, quotas, seconds) => {
    const found = at({ requests, rate: parseRate(rate), quotas, learned: { ...fresh, perSecond: 1_000 } });
    expect(found.seconds).toBeGreaterThanOrEqual(seconds);
    expect(found.seconds).toBeLessThan(seconds * (61 / 60) + 5); // the oldest of its sixty slices counts in full
  });

  it('does not know when the used part of a quota is free again, unless it is told', () => {
    const partly = at({ requests: 100, learned: fresh, quotas: [{ count: 100, perMs: hour * 1_000, used: 60 }] });
    expect(partly.secondsFrom).toBeLessThan(5);
    expect(partly.secondsTo).toBeGreaterThan(3_000);
    const told = at({ requests: 100, learned: fresh, quotas: [spent(600)] });
    expect(told.secondsFrom).toBeGreaterThan(599);
    expect(told.causes).toEqual(['learned', 'quota']);
  });

  it.each([
    ['inside', 'Thu 11:00-13:00', '2026-11-26T12:00Z', 600, '2026-11-26T12:10Z', 1],
    ['before', 'Thu 13:00-14:00', '2026-11-26T12:00Z', 600, '2026-11-26T13:10Z', 1],
    ['over midnight', '23:00-01:00', '2026-11-26T12:00Z', 5_400, '2026-11-27T00:30Z', 1],
    ['in two windows', '23:00-01:00', '2026-11-26T12:00Z', 9_000, '2026-11-27T23:30Z', 2],
    ['where the clocks go back', '00:00-06:00 Europe/Berlin', '2026-10-24T22:00Z', 25_000, '2026-10-25T04:56:40Z', 1],
    ['where the clocks go forward', '00:00-06:00 Europe/Berlin', '2026-03-28T23:00Z', 18_600, '2026-03-29T22:10Z', 2],
  ])('sends only in its window: %s', (_, text, from, requests, ends, openings) => {
    const window = parseTimeWindow(text);
    const found = at({ requests, rate: parseRate('1/s'), learned: fresh, window }, Date.parse(from));
    expect(Math.abs(forecastEnd(found) - Date.parse(ends))).toBeLessThan(2_000);
    expect(found).toMatchObject({ openings, zone: window.tz });
  });

  it('begins at its start, from which its deleting time counts', () => {
    const startsAt = noon + 600_000;
    const whole = at({ learned: fresh });
    expect(at({ learned: fresh, startsAt }).seconds! - whole.seconds!).toBeCloseTo(600, 0);
    expect(at({ learned: fresh, startsAt, maxActiveMs: 20_000 })).toMatchObject({ seconds: 620, fits: 2_000 });
    expect(at({ learned: fresh, startsAt, stopAt: startsAt + 20_000 }).fits).toBe(2_000);
    expect(at({ learned: fresh, startsAt: noon - 600_000 })).toEqual(whole); // it has come
  });

  it('says how many ids fit before it pauses', () => {
    const bounds = [{ stopAt: noon + 20_000 }, { maxActiveMs: 20_000 }];
    for (const bound of bounds) expect(at({ learned: fresh, ...bound })).toMatchObject({ seconds: 20, fits: 2_000 });
    expect(at({ learned: fresh, maxActiveMs: 200_000 }).fits).toBeNull();
  });

  it('counts no time outside its window as deleting time', () => {
    const window = parseTimeWindow('12:59-13:00,14:00-15:00');
    const found = at({ learned: fresh, window, maxActiveMs: 90_000 });
    expect([found.fits, forecastEnd(found)]).toEqual([9_000, Date.parse('2026-11-26T14:00:30Z')]);
  });

  it.each([
    ['10 million ids at one a day', { rate: parseRate('1/day') }, 10_000_000 * day],
    ['a million at ten a day', { requests: 1_000_000, rate: parseRate('100/s,10/day') }, 100_000 * day],
    [
      'in a window a week',
      { rate: parseRate('1/h'), window: parseTimeWindow('Mon 00:00-01:00') },
      10_000_000 * 7 * day,
    ],
  ])('takes a bounded time to make: %s', (_, given, seconds) => {
    const found = at({ requests: 10_000_000, learned: fresh, ...given });
    expect(found.seconds! / seconds).toBeGreaterThan(0.9);
    expect(found.seconds! / seconds).toBeLessThan(1.1);
  });
});

describe('timeToSend', () => {
  it('is a day where a quota is spent for a day, whatever was measured', () => {
    const quotas = [{ count: 250, perMs: day * 1_000, used: 250, freeAt: noon + 0.9 * day * 1_000 }];
    expect(timeToSend(20, 100, { quotas, window: null }, noon) / 1_000).toBeCloseTo(0.9 * day, -1);
  });
});

function spent(seconds: number) {
  return { count: 100, perMs: hour * 1_000, used: 100, freeAt: noon + seconds * 1_000 };
}
