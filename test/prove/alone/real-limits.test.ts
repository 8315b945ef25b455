import { describe, test } from 'vitest';
import { hasNginx } from '../../support/nginx.ts';
import { isOfNginx, meetRealLimit, nameOf, type RealLimit } from '../../support/real-limits.ts';

// Workers without a rate meet limiters that people use, each in a server process of its own.

/** Seconds after first contact. */
type Stretch = readonly [from: number, to: number];

const early: Stretch = [15, 50];
const late: Stretch = [60, 120];

type Row = RealLimit & { stretches: readonly Stretch[] };

const rows: Row[] = [];
const add = (stretches: readonly Stretch[], limit: RealLimit) => rows.push({ ...limit, stretches });

const one = { perSecond: 300, processes: 1 };
const four = { perSecond: 300, processes: 4 };
add([early], { limiter: 'express-rate-limit, no headers', ...one });
add([early], { limiter: 'express-rate-limit, draft-6', ...one });
add([early], { limiter: 'express-rate-limit, draft-7', ...one });
add([early], { limiter: 'express-rate-limit, draft-8', ...one });
add([early], { limiter: 'express-rate-limit, X-RateLimit', ...one });
add([late], { limiter: 'express-rate-limit, draft-8', windowS: 60, ...one });
add([early, late], { limiter: 'rate-limiter-flexible in memory', ...one });
add([early], { limiter: 'rate-limiter-flexible in Redis', ...one });
add([early], { limiter: 'nginx with a burst', ...one });
add([early], { limiter: 'nginx with a delayed burst', ...one });
add([early, late], { limiter: 'nginx without a burst', ...one });
add([early], { limiter: 'express-rate-limit, draft-8', isBusy: true, ...one });
add([early], { limiter: 'nginx with a burst', isBusy: true, ...one });
add([early], { limiter: 'express-rate-limit, draft-8', ...four });
add([early], { limiter: 'rate-limiter-flexible in memory', ...four });
add([early], { limiter: 'nginx without a burst', ...four });

/** So slow that they run at the same time. */
const slowly = { perSecond: 20, processes: 1 };
add([early, late], { limiter: 'express-rate-limit, no headers', ...slowly });
add([late], { limiter: 'express-rate-limit, no headers', windowS: 60, ...slowly });
add([early, late], { limiter: 'rate-limiter-flexible in Redis', ...slowly });
add([early, late], { limiter: 'nginx without a burst', ...slowly });
add([early, late], { limiter: 'nginx with a burst', perSecond: 20, processes: 4 });

type Wants = { used: number; refused: number };

function wanted({ limiter, isBusy }: RealLimit): Wants {
  if (limiter === 'nginx without a burst') return { used: 0.75, refused: 0.01 };
  return { used: isBusy ? 0.9 : 0.95, refused: 0.01 };
}

/**
 * Rows that miss what is wanted, or did in one of several runs. They are held to a little less than what was measured on a machine that did nothing
 * but this. The notes say what limits them.
 */
const unmet: Record<string, Wants & { note: string }> = {
  'express-rate-limit, draft-8, 300/s, 1 process': { used: 0.9, refused: 0.01, note: '95.9 and 99.0 % in two runs' },
  'express-rate-limit, X-RateLimit, 300/s, 1 process': {
    used: 0.88,
    refused: 0.01,
    note: '93.8 %: a refusal soon after the start',
  },
  'rate-limiter-flexible in memory, 300/s, 1 process': {
    used: 0.8,
    refused: 0.01,
    note: '85.5 and 88.2 %: each refusal costs the rest of a second, and the rate that follows is low for several',
  },
  'rate-limiter-flexible in Redis, 300/s, 1 process': {
    used: 0.85,
    refused: 0.01,
    note: '92.4 %, for the same reason',
  },
  'nginx without a burst, 300/s, 1 process': {
    used: 0.5,
    refused: 0.02,
    note: '59.8 and 63.8 %: it counts whole milliseconds, so that at most 250/s can be used',
  },
  'rate-limiter-flexible in memory, 300/s, 4 processes': {
    used: 0.8,
    refused: 0.01,
    note: '87.0 %, as with one process',
  },
  'nginx without a burst, 300/s, 4 processes': {
    used: 0.1,
    refused: 0.03,
    note: '25.9 %: permits of several processes meet, and each meeting is a refusal',
  },
  'express-rate-limit, no headers, 20/s, 1 process': {
    used: 0.8,
    refused: 0.02,
    note: '88.1 % in the first minute: the rate returns slowly after a refusal',
  },
  'express-rate-limit, no headers, 1200 in 60 s, 1 process': {
    used: 0.95,
    refused: 0.35,
    note: '16.9 % are refused: hundreds at the end of a window, and then about one a second',
  },
  'rate-limiter-flexible in Redis, 20/s, 1 process': {
    used: 0.8,
    refused: 0.02,
    note: '90.9 %: each refusal costs a second',
  },
  'nginx with a burst, 20/s, 4 processes': { used: 0.95, refused: 0.02, note: 'between 0.4 and 1.5 % are refused' },
};

/** `-t` finds a row by its whole name: vitest would cut `$name` short. */
const named = (part: Row[]) => part.map((row) => [nameOf(row), row] as const);

const noNginx = 'there is no nginx on this machine';

test('a row that misses what is wanted is a row of the table', ({ expect }) => {
  expect(rows.map(nameOf)).toEqual(expect.arrayContaining(Object.keys(unmet)));
});

const isSlow = ({ perSecond }: Row) => perSecond === slowly.perSecond;

for (const [group, part] of [
  [describe, rows.filter((row) => !isSlow(row))],
  [describe.concurrent, rows.filter(isSlow)],
] as const)
  group('a real limiter', () => {
    test.for(named(part))(
      'is used nearly whole, with few refused: %s',
      async ([name, row], { expect, onTestFinished, skip }) => {
        if (isOfNginx(row) && !hasNginx) return skip(noNginx);
        const end = row.stretches.at(-1)![1];
        const meeting = await meetRealLimit(row, end, onTestFinished);
        await meeting.reach(end);
        const seen = row.stretches.map(([from, to]) => meeting.shares(from, to));
        console.log(`${seen.map(({ words }) => words).join('\n')}\n${meeting.seconds()}`);
        const { used, refused } = unmet[name] ?? wanted(row);
        for (const shares of seen) {
          expect(shares.used, shares.words).toBeGreaterThanOrEqual(used);
          expect(shares.refused, shares.words).toBeLessThanOrEqual(refused);
        }
      },
    );
  });
