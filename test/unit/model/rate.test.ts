import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  paceOf,
  parseRate,
  partsOfLimit,
  type Rate,
  rateFromStored,
  rateSetting,
  rateText,
  storedRate,
} from '../../../src/model/rate.ts';

const day = 86_400_000;

const rates: fc.Arbitrary<Rate> = fc
  .uniqueArray(
    fc.record({ count: fc.integer({ min: 1, max: 1_000_000 }), perMs: fc.constantFrom(1_000, 60_000, 3_600_000, day) }),
    { minLength: 1, maxLength: 4, selector: ({ perMs }) => perMs },
  )
  .map((bounds) => bounds.sort((a, b) => a.perMs - b.perMs));

describe('a rate', () => {
  it.each([
    ['200/s', [[200, 1_000]]],
    ['6000/min', [[6_000, 60_000]]],
    ['100000/h', [[100_000, 3_600_000]]],
    [
      '200/s,100000/day',
      [
        [200, 1_000],
        [100_000, day],
      ],
    ],
    [
      '100000/day, 200/s',
      [
        [200, 1_000],
        [100_000, day],
      ],
    ],
    ['1000000/s', [[1_000_000, 1_000]]],
  ] as const)('is read from "%s", the shortest period first', (text, bounds) => {
    expect(parseRate(text)).toEqual(bounds.map(([count, perMs]) => ({ count, perMs })));
  });

  it.each([
    ['', 'expected a rate like 200/s, 6000/min or 200/s,100000/day, got ""'],
    ['fast', 'expected a rate like'],
    ['-1/s', 'expected a rate like'],
    ['1e3/s', 'expected a rate like'],
    ['200', 'expected a period, as in 200/s, 200/min, 200/h or 200/day, got "200"'],
    ['200/week', 'expected a rate like'],
    ['200/s,', 'expected a rate like'],
    ['200/s,,5/h', 'expected a rate like'],
    ['0/s', 'at 0 nothing would ever be sent'],
    ['200/s,0/day', 'at 0 nothing would ever be sent'],
    ['0.5/s', 'expected a whole number of requests like 30/min, got "0.5/s"'],
    ['200/s,100/s', '"200/s,100/s" has two limits per second: which one holds?'],
    ['1000001/s', '"1000001/s" is more than a million a second'],
    ['99999999999999999999/day', 'is more than a million a second'],
  ])('is refused when it reads "%s"', (text, message) => {
    expect(() => parseRate(text)).toThrow(message);
  });

  // 100,500/day is a number with a separator for the one who typed it, and must not become 100/s and 500/day.
  it.each(['100,500/day', '200,100000/day'])('of several limits needs a unit for each: "%s" is refused', (text) => {
    expect(() => parseRate(text)).toThrow('expected a');
  });

  it('is read again from what it is printed as, for the flag and for Redis', () => {
    fc.assert(
      fc.property(rates, (rate) => {
        expect(parseRate(rateSetting(rate))).toEqual(rate);
        expect(rateFromStored(storedRate(rate))).toEqual(rate);
      }),
    );
  });

  it('is either read or refused with an Error, whatever the text', () => {
    const part = fc.tuple(
      fc.string({ unit: fc.constantFrom(...'0123456789./ ,smh') }),
      fc.constantFrom('/s', '/day', ''),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          part.map((parts) => parts.join('')),
        ),
        (text) => {
          try {
            expect(paceOf(parseRate(text))).toBeGreaterThan(0);
          } catch (error) {
            expect((error as Error).message).toMatch(/expected|two limits|more than a million/);
          }
        },
      ),
    );
  });

  it.each([
    ['200/s', '200/s'],
    ['6000/min', '6,000/min'],
    ['200/s,100000/day', '200/s, at most 100,000 a day'],
    ['200/s,5000/min,1/h', '200/s, at most 5,000 a minute and 1 an hour'],
  ])('%s is told as "%s"', (text, words) => {
    expect(rateText(parseRate(text))).toBe(words);
  });

  it('is stored as counts and periods in ms, the pace first', () => {
    expect(storedRate(parseRate('100000/day,200/s'))).toBe('200/1000,100000/86400000');
    expect(rateFromStored('')).toBeNull();
  });

  it.each(['200', '200/999', '0/1000', '100/86400000,5/1000', '5/1000,6/1000', '200/1000,', 'x', '1.5/1000'])(
    'is not read from the stored text "%s"',
    (text) => expect(() => rateFromStored(text)).toThrow(`got "${text}"`),
  );

  it.each([
    ['200/s', 200],
    ['6000/min', 100],
    ['36/h,86400/day', 0.01],
  ])('%s has a pace of %d a second', (text, perSecond) => {
    expect(paceOf(parseRate(text))).toBeCloseTo(perSecond, 10);
  });
});

describe('a limit', () => {
  it.each([
    [null, null, []],
    ['200/s', 200, []],
    ['200/s,5/min,7/day', 200, [5, 7]],
    ['100000/day', null, [100_000]],
    ['6000/min,100000/day', null, [6_000, 100_000]],
  ])('%s is paced by its bound per second, and every longer one is a quota', (text, perSecond, quotas) => {
    const parts = partsOfLimit(text === null ? null : parseRate(text));
    expect([parts.perSecond, parts.quotas.map(({ count }) => count)]).toEqual([perSecond, quotas]);
  });
});
