import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryAfterMs } from '../../../src/http/retry-after.ts';
import { formatRetryAfter, retryAfterForms } from '../../../src/sandbox/fault-kinds.ts';
import { sized } from '../../support/size.ts';

const date = 'Sun, 06 Nov 1994 08:49:37 GMT';
const nowMs = Date.parse('1994-11-06T08:40:00Z');
const waitOf = (value: string, more: Record<string, string> = { date }) =>
  retryAfterMs({ 'retry-after': value, ...more }, nowMs);

/** The three forms of a date, written without the code under test or the sandbox's. */
function write(form: 'imf-fixdate' | 'rfc850' | 'asctime', ms: number): string {
  const at = new Date(ms);
  const two = (n: number) => String(n).padStart(2, '0');
  const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
  const names = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
  const [weekday, day, month] = [days[at.getUTCDay()]!, at.getUTCDate(), names[at.getUTCMonth()]!];
  const year = at.getUTCFullYear();
  const time = [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()].map(two).join(':');
  if (form === 'rfc850') return `${weekday}, ${two(day)}-${month}-${two(year % 100)} ${time} GMT`;
  if (form === 'asctime') return `${weekday.slice(0, 3)} ${month} ${String(day).padStart(2)} ${time} ${year}`;
  return `${weekday.slice(0, 3)}, ${two(day)} ${month} ${year} ${time} GMT`;
}

const moment = (from: string, to: string) =>
  fc.integer({ min: Date.parse(from) / 1_000, max: Date.parse(to) / 1_000 }).map((seconds) => seconds * 1_000);

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    ['5', 5_000],
    [' 120 ', 120_000],
    ['1.5', 1_500],
    ['007', 7_000],
    ['999999999', 999_999_999_000],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
    ['Sun, 06 Nov 1994 08:50:07 GMT', 30_000],
    ['Sunday, 06-Nov-94 08:50:07 GMT', 30_000],
    ['Sun Nov  6 08:50:07 1994', 30_000],
    ['Sun Nov 06 08:50:07 1994', 30_000],
    ['Tue, 06 Nov 1994 08:50:07 GMT', 30_000], // a Sunday
    ['Sun, 06 Nov 1994 08:49:60 GMT', 23_000],
    ['Sun, 06 Nov 1994 08:49:00 GMT', 0],
    ['Wed, 31 Dec 0050 00:00:00 GMT', 0],
    ['1994-11-06T08:50:07Z', 30_000],
    ['1994-11-06T09:50:07.500+01:00', 30_500],
    ['5, 10', 10_000],
    ['30,2 , soon', 30_000],
    ['5, Sun, 06 Nov 1994 08:50:07 GMT', 30_000],
    ['Sunday, 06-Nov-94 08:50:07 GMT, Sun Nov  6 08:50:37 1994,5', 60_000],
  ])('%j asks for %d ms', (value, ms) => {
    expect(waitOf(value)).toBe(ms);
  });

  it.each([
    ...['', '-1', '+5', '1e3', '0x10', '5s', ', ', 'Sun, 5s', 'soon', 'NaN', 'Infinity', '5.', '.5'],
    ...[
      '1994-11-06',
      '1994-11-06T08:50:07',
      '1994-11-06 08:50:07Z',
      '1994-13-06T08:50:07Z',
      'Sun, 6 Nov 1994 08:50:07 GMT',
      'Sun, 06 Nov 1994 08:50:07 UTC',
      'sun, 06 nov 1994 08:50:07 gmt',
    ],
    ...['Sun, 06 Nov 94 08:50:07 GMT', 'Sun, 06-Nov-94 08:50:07 GMT', 'Sunday, 06-Nov-1994 08:50:07 GMT'],
    ...['Mon, 31 Feb 1994 08:50:07 GMT', 'Tue, 29 Feb 1994 08:50:07 GMT', 'Mon, 00 Jan 1995 08:50:07 GMT'],
    ...['Sun, 06 Nov 1994 25:00:00 GMT', 'Sun, 06 Nov 1994 08:60:00 GMT', 'Sun, 06 Nov 1994 08:50:61 GMT'],
    ...[
      'Sun Nov  0 08:50:07 1994',
      'Sun Nov 6 08:50:07 1994',
      'Day, 06 Nov 1994 08:50:07 GMT',
      'Sun, 06 Foo 1994 08:50:07 GMT',
    ],
  ])('%j asks for nothing', (value) => {
    expect(waitOf(value)).toBeNull();
  });

  it.each([
    ['1795811868', 12_000],
    ['1795811868.5', 12_500],
    ['1795811868000', 12_000],
    ['1795811855', 0],
    ['999999999', 999_999_999_000],
  ])('%j is a point in time from 10^9 on: %d ms', (value, ms) => {
    const date = new Date(1_795_811_856_000).toUTCString();
    for (const offMs of [-600_000, 0]) {
      expect(retryAfterMs({ 'retry-after': value, date }, 1_795_811_856_000 + offMs)).toBe(ms);
    }
  });

  it('is missing in most answers', () => {
    expect(retryAfterMs({ date }, nowMs)).toBeNull();
  });

  it('counts a date from the answer’s Date whatever our clock says, and from our clock where that cannot be read', () => {
    const until = 'Sun, 06 Nov 1994 08:50:07 GMT';
    for (const offMs of [-600_000, 0, 600_000]) {
      expect(retryAfterMs({ 'retry-after': until, date }, Date.parse(date) + offMs)).toBe(30_000);
    }
    for (const unreadable of ['', 'yesterday', 'Sun, 31 Feb 1994 08:49:37 GMT']) {
      expect(waitOf(until, { date: unreadable })).toBe(607_000);
    }
    expect(waitOf(until, {})).toBe(607_000);
  });

  it.each([
    ['1976-06-15T00:00:00Z', 'Tuesday, 15-Jun-26 00:00:00 GMT', 50],
    ['1976-06-15T00:00:00Z', 'Tuesday, 15-Jun-26 00:00:01 GMT', -50], // over 50 years ahead: the past
    ['2026-11-21T00:00:00Z', 'Friday, 20-Nov-76 00:00:00 GMT', 50],
    ['2099-12-31T23:00:00Z', 'Friday, 01-Jan-00 00:00:00 GMT', 0],
    ['2026-02-01T00:00:00Z', 'Tuesday, 29-Feb-00 00:00:00 GMT', -26],
  ])('at %s takes the year of "%s" for one at most 50 ahead', (now, value, years) => {
    const ms = retryAfterMs({ 'retry-after': value }, Date.parse(now))!;
    expect(Math.round(ms / 31_556_952_000)).toBe(Math.max(0, years));
  });

  it('gives way to its finer relatives in ms', () => {
    expect(waitOf('2', { 'retry-after-ms': '1200' })).toBe(1_200);
    expect(waitOf('2', { 'x-ms-retry-after-ms': '1300.5' })).toBe(1_301);
    expect(waitOf('2', { 'retry-after-ms': '900, 1200' })).toBe(1_200);
    expect(waitOf('2', { 'retry-after-ms': '-5', 'x-ms-retry-after-ms': 'soon' })).toBe(2_000);
    expect(retryAfterMs({ 'retry-after-ms': '0' }, nowMs)).toBe(0);
  });

  it('counts the longest of several', () => {
    expect(retryAfterMs({ 'retry-after': ['5', 'nonsense', '7'] }, nowMs)).toBe(7_000);
    expect(retryAfterMs({ 'retry-after': [] }, nowMs)).toBeNull();
  });

  it('is read back from each form of the sandbox, and never comes too early', () => {
    const seconds = fc.integer({ min: 0, max: 100_000 });
    const clocks = fc.tuple(
      fc.integer({ min: 0, max: 4_000_000_000_000 }),
      fc.integer({ min: -600_000, max: 600_000 }),
    );
    fc.assert(
      fc.property(fc.constantFrom(...retryAfterForms), seconds, clocks, (form, wait, [server, offMs]) => {
        const headers = { 'retry-after': formatRetryAfter(form, wait, server), date: new Date(server).toUTCString() };
        const ms = retryAfterMs(headers, server + offMs)!;
        expect(ms).toBeGreaterThanOrEqual(wait * 1_000);
        expect(ms).toBeLessThanOrEqual((wait + 1) * 1_000);
      }),
    );
  });

  it('is read back from each form of a date as the distance of two dates, in mixed forms', () => {
    const forms = fc.constantFrom('imf-fixdate' as const, 'rfc850' as const, 'asctime' as const);
    const moments = moment('1980-01-01T00:00:00Z', '2075-01-01T00:00:00Z');
    fc.assert(
      fc.property(forms, forms, moments, fc.integer({ min: -1_000, max: 100_000 }), (a, b, at, seconds) => {
        const headers = { 'retry-after': write(a, at + seconds * 1_000), date: write(b, at) };
        expect(retryAfterMs(headers, at)).toBe(Math.max(0, seconds) * 1_000);
      }),
    );
  });

  it('never throws, and is null or a whole number of ms from 0, whatever stands there', () => {
    const piece = fc.constantFrom(
      ...'0123456789 ,:-.'.split(''),
      'Sun',
      'Sunday',
      'Nov',
      'Feb',
      '1994',
      '94',
      '31',
      ' GMT',
    );
    const damaged = fc
      .tuple(fc.constantFrom(date, write('rfc850', nowMs), write('asctime', nowMs)), fc.nat(30), piece)
      .map(([text, at, what]) => text.slice(0, at) + what + text.slice(at + what.length));
    const value = fc.oneof(
      fc.string(),
      fc.array(piece).map((pieces) => pieces.join('')),
      damaged,
    );
    fc.assert(
      fc.property(value, value, value, fc.integer({ min: 0, max: 8e12 }), (retryAfter, ownDate, ms, now) => {
        const asked = retryAfterMs({ 'retry-after': retryAfter, date: ownDate, 'retry-after-ms': ms }, now);
        expect(asked === null || (Number.isSafeInteger(asked) && asked >= 0)).toBe(true);
      }),
      { numRuns: sized(200, 2_000) },
    );
  });
});
