import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasAdvice, readRateAdvice } from '../../../src/http/rate-headers.ts';
import { sized } from '../../support/size.ts';

const nowMs = Date.parse('2026-11-21T10:00:00Z');
const date = 'Sat, 21 Nov 2026 10:00:00 GMT';
const epoch = nowMs / 1_000;

type Headers = Record<string, string | string[]>;

/** As a server sends them: names in any case. */
function advise(headers: Headers) {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const advice = readRateAdvice(lower, nowMs);
  return advice && [advice.remaining, advice.resetMs, Number(advice.perSecond.toFixed(4))];
}

describe('advice', () => {
  it.each<[string, Headers, [remaining: number, resetMs: number, perSecond: number]]>([
    [
      'GitHub',
      {
        'X-RateLimit-Limit': '5000',
        'X-RateLimit-Remaining': '4999',
        'X-RateLimit-Reset': `${epoch + 3_000}`,
        Date: date,
      },
      [4_999, 3_000_000, 1.6663],
    ],
    [
      'X (Twitter)',
      { 'x-rate-limit-remaining': '10', 'x-rate-limit-reset': `${epoch + 100}`, date },
      [10, 100_000, 0.1],
    ],
    ['Discord', { 'X-RateLimit-Remaining': '1', 'X-RateLimit-Reset': `${epoch + 2}.5`, date }, [1, 2_500, 0.4]],
    [
      'a reset in ms',
      { 'X-RateLimit-Remaining': '30', 'X-RateLimit-Reset': `${nowMs + 60_000}`, date },
      [30, 60_000, 0.5],
    ],
    [
      'Mastodon',
      { 'X-RateLimit-Remaining': '30', 'X-RateLimit-Reset': '2026-11-21T10:01:00.000000Z', Date: date },
      [30, 60_000, 0.5],
    ],
    [
      'a reset as an HTTP date',
      { 'X-RateLimit-Remaining': '30', 'X-RateLimit-Reset': 'Sat, 21 Nov 2026 10:01:00 GMT', Date: date },
      [30, 60_000, 0.5],
    ],
    ['a reset in so many seconds', { 'X-RateLimit-Remaining': '30', 'X-RateLimit-Reset': '60' }, [30, 60_000, 0.5]],
    ['GitLab', { 'RateLimit-Remaining': '60', 'RateLimit-Reset': `${epoch + 60}`, date }, [60, 60_000, 1]],
    [
      'express-rate-limit, draft 6',
      {
        'RateLimit-Policy': '100;w=60',
        'RateLimit-Limit': '100',
        'RateLimit-Remaining': '50',
        'RateLimit-Reset': '25',
      },
      [50, 25_000, 2],
    ],
    [
      'drafts with a window beside the limit',
      { 'RateLimit-Limit': '100, 100;w=60', 'RateLimit-Remaining': '0', 'RateLimit-Reset': '7' },
      [0, 7_000, 0],
    ],
    ['draft 7', { 'RateLimit-Policy': '100;w=60', RateLimit: 'limit=100, remaining=50, reset=25' }, [50, 25_000, 2]],
    [
      'draft 8 and later',
      { 'RateLimit-Policy': '"default";q=100;w=60;pk=:cHNzc3Q=:', RateLimit: '"default";r=50;t=25;pk=:cHNzc3Q=:' },
      [50, 25_000, 2],
    ],
    [
      'a token for a name',
      { 'RateLimit-Policy': 'default;q=100;w=60', RateLimit: 'default;r=50;t=25' },
      [50, 25_000, 2],
    ],
    ['no policy', { RateLimit: '"default";r=50;t=25' }, [50, 25_000, 2]],
    ['no time but a window', { 'RateLimit-Policy': '"a";q=100;w=50', RateLimit: '"a";r=50' }, [50, 50_000, 1]],
    ['the strictest of several limits', { RateLimit: '"s";r=9;t=1, "min";r=30;t=60' }, [30, 60_000, 0.5]],
    ['the same in two headers', { RateLimit: ['"s";r=9;t=1', '"min";r=30;t=60'] }, [30, 60_000, 0.5]],
    [
      'a policy that is stricter than the limit beside it',
      { 'RateLimit-Policy': '"burst";q=10;w=10, "daily";q=100000;w=86400', RateLimit: '"daily";r=9000;t=3000' },
      [10, 10_000, 1],
    ],
    ['a policy alone', { 'RateLimit-Policy': '"hourly";q=3600;w=3600;qu="requests"' }, [3_600, 3_600_000, 1]],
    [
      'limits of bytes beside one of requests',
      {
        'RateLimit-Policy': '"b";q=9;w=9;qu="content-bytes", "r";q=100;w=50',
        RateLimit: '"b";r=1;t=9, "r";r=100;t=50',
      },
      [100, 50_000, 2],
    ],
    [
      'an unreadable new header beside an old one',
      { RateLimit: '???', 'X-RateLimit-Remaining': '30', 'X-RateLimit-Reset': '60' },
      [30, 60_000, 0.5],
    ],
    [
      'two servers on the way',
      { 'X-RateLimit-Remaining': ['100', '30'], 'X-RateLimit-Reset': '60, 60' },
      [30, 60_000, 0.5],
    ],
  ])('is taken from %s', (_, headers, advice) => {
    expect(advise(headers)).toEqual(advice);
  });

  it.each<[string, Headers]>([
    ['no header', { date, 'content-type': 'application/json' }],
    ['a limit alone', { 'X-RateLimit-Limit': '100', 'RateLimit-Limit': '100' }],
    ['no reset', { 'X-RateLimit-Remaining': '5' }],
    ['a reset over an hour away', { 'X-RateLimit-Remaining': '5', 'X-RateLimit-Reset': '3601' }],
    [
      'a point in time over an hour away',
      { 'X-RateLimit-Remaining': '5', 'X-RateLimit-Reset': `${epoch + 3_601}`, date },
    ],
    ['a reset that is over', { 'X-RateLimit-Remaining': '5', 'X-RateLimit-Reset': `${epoch - 1}`, date }],
    ['a reset now', { 'RateLimit-Remaining': '0', 'RateLimit-Reset': '0' }],
    ['negative numbers', { 'X-RateLimit-Remaining': '-5', 'X-RateLimit-Reset': '-10' }],
    ['words', { 'X-RateLimit-Remaining': 'unlimited', 'X-RateLimit-Reset': 'tomorrow' }],
    ['negative parameters', { RateLimit: '"a";r=-1;t=30' }],
    ['parameters of another type', { RateLimit: '"a";r="5";t=?1' }],
    ['an inner list', { RateLimit: '("a" "b");r=5;t=5' }],
    ['a list that is malformed', { RateLimit: '"a;r=5;t=5' }],
    ['a malformed dictionary', { RateLimit: 'limit=100, remaining=, reset=5' }],
    ['as many resets as limits missing', { 'X-RateLimit-Remaining': '5, 6', 'X-RateLimit-Reset': '60' }],
    ['a policy of bytes alone', { 'RateLimit-Policy': '"b";q=9;w=9;qu="content-bytes"' }],
    ['a policy per day alone', { 'RateLimit-Policy': '"daily";q=1000;w=86400' }],
    [
      'empty headers',
      { RateLimit: '', 'RateLimit-Policy': '', 'RateLimit-Remaining': '', 'X-RateLimit-Remaining': [] },
    ],
  ])('is not taken from %s', (_, headers) => {
    expect(advise(headers)).toBeNull();
  });

  it('counts a point in time from the server’s clock, and from ours where it doesn’t say', () => {
    const headers = { 'x-ratelimit-remaining': '10', 'x-ratelimit-reset': `${epoch + 100}` };
    expect(readRateAdvice({ ...headers, date }, nowMs + 600_000)!.resetMs).toBe(100_000);
    expect(readRateAdvice(headers, nowMs + 40_000)!.resetMs).toBe(60_000);
  });

  it('never throws and is never nonsense, whatever the headers hold', () => {
    const names = [
      ...['ratelimit', 'ratelimit-policy', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'date'],
      ...['x-ratelimit-remaining', 'x-ratelimit-reset', 'x-rate-limit-remaining', 'x-rate-limit-reset'],
    ];
    const piece = fc.constantFrom(
      '"a"',
      'b',
      ';r=',
      ';t=',
      ';q=',
      ';w=',
      ';qu=',
      '0',
      '7',
      '60',
      '9999999999',
      '-',
      '.5',
      ', ',
      '=',
      '(',
      ')',
      ' ',
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(piece).map((pieces) => pieces.join('')),
      fc.nat().map(String),
    );
    const headers = fc.dictionary(fc.constantFrom(...names), fc.oneof(text, fc.array(text, { maxLength: 3 })));
    fc.assert(
      fc.property(headers, fc.integer({ min: 0, max: 8e12 }), (fields, now) => {
        const advice = readRateAdvice(fields, now);
        if (advice === null) return;
        for (const number of Object.values({ ...advice, quota: advice.quota ?? 0 }))
          expect(Number.isFinite(number) && number >= 0).toBe(true);
        expect(advice.resetMs > 0 && advice.resetMs <= 3_600_000).toBe(true);
      }),
      { numRuns: sized(300, 3_000) },
    );
  });
});

describe('the requests of a whole window', () => {
  it.each<[string, Record<string, string>, number | null]>([
    ['draft 6', { 'ratelimit-limit': '100', 'ratelimit-remaining': '50', 'ratelimit-reset': '25' }, 100],
    [
      'draft 6, with the window beside the limit',
      { 'ratelimit-limit': '100, 100;w=60', 'ratelimit-remaining': '0', 'ratelimit-reset': '7' },
      100,
    ],
    ['draft 7', { ratelimit: 'limit=100, remaining=50, reset=25' }, 100],
    ['draft 8', { 'ratelimit-policy': '"p";q=100;w=60', ratelimit: '"p";r=50;t=30' }, 100],
    ['a policy alone', { 'ratelimit-policy': '"p";q=100;w=60', ratelimit: '' }, 100],
    ['X-RateLimit', { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '50', 'x-ratelimit-reset': '60' }, 100],
    ['no such header', { 'x-ratelimit-remaining': '50', 'x-ratelimit-reset': '60' }, null],
    ['no number', { 'x-ratelimit-limit': 'many', 'x-ratelimit-remaining': '50', 'x-ratelimit-reset': '60' }, null],
    ['draft 8 without a policy', { ratelimit: '"p";r=50;t=30' }, null],
  ])('are read from %s', (_, headers, quota) => {
    expect(readRateAdvice(headers, nowMs)?.quota).toBe(quota);
  });
});

it.each([
  ...['ratelimit', 'ratelimit-policy', 'ratelimit-remaining', 'x-ratelimit-remaining', 'x-rate-limit-remaining'],
])('an answer with %s alone is looked at, one with other headers is not', (name) => {
  expect(hasAdvice({ [name]: '1' })).toBe(true);
  expect(hasAdvice({ [`${name}-s`]: '1', date })).toBe(false);
});

it('the strictest of several limits counts, wherever it stands', () => {
  const [strict, loose] = ['"a";r=5;t=10', '"b";r=500;t=10'];
  const alone = advise({ RateLimit: strict });
  expect(alone).not.toBeNull();
  expect(advise({ RateLimit: `${strict}, ${loose}` })).toEqual(alone);
  expect(advise({ RateLimit: `${loose}, ${strict}` })).toEqual(alone);
  expect(advise({ RateLimit: [strict, loose] })).toEqual(alone);
});
