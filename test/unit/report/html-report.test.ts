import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { binsMax } from '../../../src/history/history.lua.ts';
import type { HistoryPoint } from '../../../src/history/history-points.ts';
import type { AuditEntry } from '../../../src/ledger/audit.ts';
import { parseMeasures } from '../../../src/ledger/measures.ts';
import type { OutcomeRow } from '../../../src/ledger/outcome-rows.ts';
import { parseRun } from '../../../src/ledger/run.ts';
import { idOutcomes } from '../../../src/model/outcome.ts';
import { parseRate, storedRate } from '../../../src/model/rate.ts';
import { FailureSamples, type PageFacts, renderPage } from '../../../src/report/html-report.ts';
import { tagsOf, textOf } from '../../support/html.ts';
import { sized } from '../../support/size.ts';

const start = 1_800_000_000_000;

function row(wish: Partial<OutcomeRow> = {}): OutcomeRow {
  const place = { file: 'old.csv', line: 17, resource: null, id: 'a-1', attempts: 1, settledAt: '' };
  return { ...place, outcome: 'failed', status: 409, code: 'http_409', excerpt: 'locked', ...wish };
}

/** A run of which every text is this one. */
function runOf(text: string, fields: Record<string, string> = {}) {
  const texts = ['reason', 'who', 'createdBy', 'account', 'sha256', 'note', 'onStatus', 'maxFailures', 'canary'];
  return parseRun('20261120-1913-mxmm', {
    ...Object.fromEntries(texts.map((name) => [name, text])),
    state: 'halted',
    halt: 'forbidden',
    baseUrl: 'http://localhost:8080',
    command: text,
    doubt: text,
    doubtSince: '1',
    files: JSON.stringify([text]),
    rows: '10',
    ids: '10',
    failed: '4',
    deleted: '5',
    createdAt: String(start),
    startedAt: String(start),
    keepMs: '1000',
    activeMs: '1000',
    ...fields,
  });
}

function pageWith(text: string, rows: OutcomeRow[], wish: Partial<PageFacts> = {}): string {
  const samples = new FailureSamples();
  for (const one of rows) samples.add(one);
  const entry: AuditEntry = { at: start, action: 'halt', by: 'guard', who: text, reason: text, rate: text };
  const history = { points: [point(0)], events: [{ at: start, event: 'state', text } as const] };
  const facts = {
    run: runOf(text),
    standing: null,
    history,
    measures: parseMeasures({}),
    audit: [entry],
    failures: samples.list(),
    proof: [text],
  };
  return renderPage({ ...facts, ...wish });
}

function point(n: number): HistoryPoint {
  return {
    from: start + 1_000 * n,
    to: start + 1_000 * (n + 1),
    isOpen: false,
    activeMs: 1_000,
    requests: 100,
    refused: 3,
    waitedMs: 0,
    achieved: 97 + (n % 7) / 3,
    allowed: 400 + n,
    inFlight: 3.3 + n,
    takeovers: 0,
    retried: n % 4,
    counts: Object.fromEntries(idOutcomes.map((outcome, i) => [outcome, 17 * i + n + 1])),
    latencyMs: { p50: 7 + n / 3, p95: 20 + n / 7 },
  };
}

const hostile = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "'><svg/onload=alert(1)>",
  '</style><script src="http://evil.example/x.js"></script>',
  '<!-- ',
  ']]>',
  '&lt;script&gt;',
  'a\u202egpj.exe',
  '\ud800',
  '\0\x1b[31m\r\n',
  '=1+1',
];

const tags = 'html head meta title style body main h1 h2 h3 p b section div table thead tbody tr th td dl dt dd code';
const known = new Set([...tags.split(' '), ...'figure figcaption span svg path'.split(' ')]);
const attributes = new Set(
  'lang charset http-equiv content name class style viewBox preserveAspectRatio role aria-label d'.split(' '),
);

/** Checks that a page holds only the tags and attributes of ours, and those as often as with harmless texts. */
function expectHarmless(page: string, like: string): void {
  const found = tagsOf(page);
  expect(found.filter(({ name }) => !known.has(name))).toEqual([]);
  expect(found.flatMap(({ attributes }) => attributes).filter((name) => !attributes.has(name))).toEqual([]);
  expect(found.map(({ name }) => name)).toEqual(tagsOf(like).map(({ name }) => name));
}

describe('the page of a run', () => {
  it.each(hostile)('shows %j as text, wherever it comes from', (text) => {
    const rows = (id: string) => [row({ id, excerpt: id, file: id })];
    const page = pageWith(text, rows(text));
    expectHarmless(page, pageWith('harmless', rows('harmless')));
    expect(page).not.toMatch(/[\0-\x09\x0b-\x1f\u202a-\u202e\ud800]/);
  });

  it('shows any id as text', () => {
    const id = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(fc.array(id, { minLength: 5, maxLength: 5 }), (ids) => {
        const rows = (of: string[]) => of.map((id) => row({ id }));
        expectHarmless(pageWith('x', rows(ids)), pageWith('x', rows(['1', '2', '3', '4', '5'])));
      }),
      { numRuns: sized(10, 100) },
    );
    expect(textOf(pageWith('x', [row({ id: 'a<b>&"c\'' })]))).toContain('a<b>&"c\'');
  });

  it('loads nothing: it names neither an address to fetch nor a script', () => {
    const page = pageWith('x', [row()]);
    expect(page).not.toMatch(/<script|<link|<img|<iframe|<object|href|src=|url\(|@import|\son\w+=/i);
    expect(page).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`);
    expect(page).toMatch(/prefers-color-scheme:dark/);
    expect(page).toContain('name="viewport" content="width=device-width');
  });

  it('says what became of the rows, why, what halted the run and who did what', () => {
    const text = textOf(pageWith('ana', [row(), row({ id: 'a-2' }), row({ code: 'http_403' })]));
    for (const words of [
      'failed · http_409 · 2',
      'a-2',
      'old.csv:17',
      'halted',
      'forbidden',
      '50.0 %',
      'halt rate ana',
    ])
      expect(text).toContain(words);
  });

  it('shows a wait as one event with its length, and as an area in each chart', () => {
    const events = [
      { at: start, event: 'state', text: 'running by ana' },
      { at: start + 1_000, event: 'waiting', text: 'waiting: the API answers 503' },
      { at: start + 2_000, event: 'rate', text: 'allowed rate: 40/s' },
      { at: start + 4_000, event: 'resumed', text: 'sending again' },
      { at: start + 9_000, event: 'waiting', text: 'waiting' },
    ] as const;
    const points = Array.from({ length: 10 }, (_, n) => point(n));
    const page = pageWith('ana', [], { history: { points, events: [...events] } });
    const text = textOf(page);
    for (const words of ['running by ana', 'waited 3 s: the API answers 503', 'allowed rate: 40/s', 'waiting'])
      expect(text).toContain(words);
    expect(text).not.toContain('sending again');
    expect(page).toContain('<path class="wait" d="M100 0h300V100h-300zM900 0h100V100h-100z"/>');
    expect(page).toContain('<path class="mark" d="M0 0V100"/>');
  });

  it('draws no bin that is not all recorded, and nothing of what was not attempted', () => {
    const closed = [point(0), point(1)];
    const drawn = (points: HistoryPoint[]) => shapesOf(pageWith('ana', [], { history: { points, events: [] } }));
    const counts = { ...point(2).counts, deleted: 240_000 };
    expect(drawn([...closed, { ...point(2), isOpen: true, counts }])).toEqual(drawn(closed));
    const left = closed.map((one) => ({ ...one, counts: { ...one.counts, not_attempted: 1_800 } }));
    expect(drawn(left)).toEqual(drawn(closed));
  });

  /** @invariant bounded-history */
  it('stays below 1 MB, whatever the ids, the answers and the reasons are', () => {
    const long = '"'.repeat(10_000);
    const codes = Array.from({ length: 400 }, (_, i) => `http_${200 + i}`);
    const rows = codes.flatMap((code) =>
      Array.from({ length: 30 }, () => row({ code, id: long, excerpt: long, file: long })),
    );
    const files = JSON.stringify(Array.from({ length: 5_000 }, () => long.slice(0, 500)));
    const events = Array.from(
      { length: 300 },
      () => ({ at: start, event: 'waiting', text: long.slice(0, 1_000) }) as const,
    );
    const page = pageWith(long, rows, {
      run: runOf(long, { files }),
      history: { points: Array.from({ length: binsMax }, (_, n) => point(n)), events },
      audit: Array.from({ length: 201 }, () => ({
        at: start,
        action: 'halt',
        by: 'guard',
        who: long,
        reason: long,
        rate: long,
      })),
    });
    expect(Buffer.byteLength(page)).toBeLessThan(1_000_000);
    expect(page.match(/<h3>failed/g)).toHaveLength(50);
  });
});

/** What each line of a page says: its headings, rows, names with their values, and captions. */
function linesOf(page: string): string[] {
  const parts = page.replace(/^[\s\S]*<main>/, '').split(/(?=<(?:h1|h2|h3|p|tr|dt|figure|div class="axis")\b)/);
  return parts.map((part) => textOf(part).trim()).filter((line) => line !== '');
}

/** The shapes of each chart of a page. */
function shapesOf(page: string): string[][] {
  const figures = page.match(/<figure>[\s\S]*?<\/figure>/g) ?? [];
  return figures.map((figure) => [...figure.matchAll(/<path[^>]*>/g)].map(([path]) => path));
}

describe('all that a page says', () => {
  it('of a run that was halted', () => {
    const audit: AuditEntry[] = [
      { at: start - 5_000, action: 'submit', by: 'operator', who: 'ana', reason: '' },
      { at: start + 2_000, action: 'rate', by: 'operator', who: '', reason: 'too fast', rate: '40/s' },
      { at: start + 4_000, action: 'halt', by: 'guard', who: '', reason: '3 times 403' },
    ];
    const events = [
      { at: start, event: 'state', text: 'running by ana' },
      { at: start + 1_000, event: 'waiting', text: 'waiting: the API answers 503' },
      { at: start + 1_500, event: 'resumed', text: 'sending again' },
      { at: start + 2_000, event: 'rate_set', text: 'rate: 40/s' },
    ] as const;
    const points = [point(0), { ...point(1), achieved: null, latencyMs: null }, point(2), point(3)];
    const measured = { requests: '400', refused: '12', refreshes: '2', workMs: '4000', heldMs: '1000' };
    const limits = { allowed: '1600', limitedMs: '4000' };
    const latencies = { l50: '10', l60: '80', l70: '10' };
    const fields = {
      state: 'halted',
      reason: '3 times 403',
      halt: 'forbidden',
      account: 'crm',
      baseUrl: 'https://api.example',
      rows: '1200',
      ids: '1100',
      deleted: '1000',
      absent: '20',
      failed: '30',
      unknown: '2',
      duplicate: '100',
      attempts: '1234',
      createdBy: 'ana',
      who: 'ana',
      note: 'old views',
      onStatus: '409=retry,423=wait',
      files: JSON.stringify(['a.csv', 'b.csv']),
      sha256: 'abc123',
      rate: storedRate(parseRate('400/s')),
      maxFailures: '5%',
      canary: '100 3:1',
      maxDeletes: '1500',
      expectAbsent: '1',
      detached: '1',
      doubt: 'Redis was away',
      doubtSince: String(start),
      retryOf: '20261119-1913-aaaa',
      retriedBy: '20261121-1913-bbbb',
      createdAt: String(start - 5_000),
      startedAt: String(start),
      endedAt: '',
      keepMs: '2592000000',
      activeMs: '4000',
      command: 'expunge run a.csv b.csv',
    };
    const rows = [row(), row({ id: 'a-2' }), row({ code: 'http_403', outcome: 'unknown', excerpt: '' })];
    const run = runOf('', fields);
    const measures = parseMeasures({ ...measured, ...limits, ...latencies });
    const page = pageWith('', rows, { run, measures, audit, history: { points, events: [...events] } });
    expect(linesOf(page)).toMatchInlineSnapshot(`
      [
        "Run 20261120-1913-mxmm",
        "halted : 3 times 403",
        "1,200 rows, 1,120 of them without a problem, 48 open · https://api.example (crm)",
        "2027-01-15 08:00:00 UTC",
        "Outcomes",
        "outcome rows share meaning",
        "deleted 1,000 83.3 % the API confirmed it",
        "absent 20 1.6 % not there at our first request",
        "failed 30 2.5 % rejected by the API; presumably still exists",
        "unknown 2 0.1 % no answer shows whether it is gone",
        "duplicate 100 8.3 % listed earlier; sent once",
        "pending 48 4.0 % no outcome yet",
        "all 1,200 100 %",
        "Pace",
        "deleting time 4 s",
        "requests 400",
        "attempts 1,234",
        "achieved 97/s",
        "allowed 400/s",
        "throttled 12",
        "waited 1 s",
        "latency p50 18 ms, p95 43 ms, p99 43 ms",
        "tokens fetched 2",
        "Over time",
        "Ids by outcome deleted absent gone_unconfirmed failed unknown up to 190/s 2027-01-15 08:00:00 UTC 2027-01-15 08:00:04 UTC",
        "Requests allowed achieved up to 403/s 2027-01-15 08:00:00 UTC 2027-01-15 08:00:04 UTC",
        "Throttled 429 up to 3/s 2027-01-15 08:00:00 UTC 2027-01-15 08:00:04 UTC",
        "Retried errors, no answer up to 3/s 2027-01-15 08:00:00 UTC 2027-01-15 08:00:04 UTC",
        "Latency p95 p50 up to 20 ms 2027-01-15 08:00:00 UTC 2027-01-15 08:00:04 UTC",
        "Requests in flight, on average in flight up to 6.3 2027-01-15 08:00:00 UTC 2027-01-15 08:00:04 UTC",
        "Shaded: nothing was sent. Dashed: an event. If there are many waits, only the longest are kept.",
        "Events",
        "at event",
        "2027-01-15 08:00:00 UTC running by ana",
        "2027-01-15 08:00:01 UTC waited 0.5 s: the API answers 503",
        "2027-01-15 08:00:02 UTC rate: 40/s",
        "Failures",
        "failed · http_409 · 2",
        "id row answer",
        "a-1 old.csv:17 locked",
        "a-2 old.csv:17 locked",
        "unknown · http_403 · 1",
        "id row answer",
        "a-1 old.csv:17",
        "Guards",
        "halted by forbidden",
        "ids sent at most 1500",
        "failures at most 5%",
        "absent ids expected true",
        "in doubt Redis was away",
        "at what why",
        "2027-01-15 08:00:04 UTC halt 3 times 403",
        "Plan",
        "list a.csv, b.csv",
        "ids 1,100",
        "sha256 abc123",
        "target https://api.example",
        "account crm",
        "rate 400/s",
        "on status 409=retry,423=wait",
        "kept for 30d",
        "deleted by workers",
        "retry of 20261119-1913-aaaa",
        "retried by 20261121-1913-bbbb",
        "submitted 2027-01-15 07:59:55 UTC",
        "by ana",
        "because old views",
        "command expunge run a.csv b.csv",
        "Who did what",
        "at what who why",
        "2027-01-15 07:59:55 UTC submit ana",
        "2027-01-15 08:00:02 UTC rate rate 40/s operator too fast",
        "2027-01-15 08:00:04 UTC halt guard 3 times 403",
      ]
    `);
    expect(shapesOf(page)).toMatchInlineSnapshot(`
      [
        [
          "<path class="wait" d="M250 0h125V100h-125z"/>",
          "<path class="mark" d="M0 0V100M500 0V100"/>",
          "<path class="fill" style="--c:var(--s0)" d="M0 100h250V99.5h-250zM250 100h250V99h-250zM500 100h250V98.5h-250zM750 100h250V98h-250z"/>",
          "<path class="fill" style="--c:var(--s1)" d="M0 99.5h250V90.4h-250zM250 99h250V89.4h-250zM500 98.5h250V88.4h-250zM750 98h250V87.4h-250z"/>",
          "<path class="fill" style="--c:var(--s2)" d="M0 90.4h250V72.7h-250zM250 89.4h250V71.2h-250zM500 88.4h250V69.7h-250zM750 87.4h250V68.2h-250z"/>",
          "<path class="fill" style="--c:var(--s3)" d="M0 72.7h250V46.4h-250zM250 71.2h250V44.4h-250zM500 69.7h250V42.4h-250zM750 68.2h250V40.4h-250z"/>",
          "<path class="fill" style="--c:var(--s4)" d="M0 46.4h250V11.6h-250zM250 44.4h250V9.1h-250zM500 42.4h250V6.5h-250zM750 40.4h250V4h-250z"/>",
        ],
        [
          "<path class="wait" d="M250 0h125V100h-125z"/>",
          "<path class="mark" d="M0 0V100M500 0V100"/>",
          "<path class="step" style="--c:var(--s1)" d="M0 4.7H250V4.5H500V4.2H750V4H1000"/>",
          "<path class="step" style="--c:var(--s0)" d="M0 76.9H250M500 76.7H750V76.7H1000"/>",
        ],
        [
          "<path class="wait" d="M250 0h125V100h-125z"/>",
          "<path class="mark" d="M0 0V100M500 0V100"/>",
          "<path class="fill" style="--c:var(--s4)" d="M0 100h250V4h-250zM250 100h250V4h-250zM500 100h250V4h-250zM750 100h250V4h-250z"/>",
        ],
        [
          "<path class="wait" d="M250 0h125V100h-125z"/>",
          "<path class="mark" d="M0 0V100M500 0V100"/>",
          "<path class="fill" style="--c:var(--s3)" d="M250 100h250V68h-250zM500 100h250V36h-250zM750 100h250V4h-250z"/>",
        ],
        [
          "<path class="wait" d="M250 0h125V100h-125z"/>",
          "<path class="mark" d="M0 0V100M500 0V100"/>",
          "<path class="step" style="--c:var(--s4)" d="M0 6H250M500 4.7H750V4H1000"/>",
          "<path class="step" style="--c:var(--s1)" d="M0 67.1H250M500 64H750V62.4H1000"/>",
        ],
        [
          "<path class="wait" d="M250 0h125V100h-125z"/>",
          "<path class="mark" d="M0 0V100M500 0V100"/>",
          "<path class="step" style="--c:var(--s2)" d="M0 49.7H250V34.5H500V19.2H750V4H1000"/>",
        ],
      ]
    `);
  });

  it('of a run that is complete, and of which nothing was measured', () => {
    const fields = {
      state: 'completed',
      halt: '',
      rows: '5',
      ids: '5',
      deleted: '5',
      failed: '',
      reason: 'no matter',
      files: JSON.stringify(Array.from({ length: 22 }, (_, i) => `${i}.csv`)),
      doubt: '',
      doubtSince: '',
      startedAt: '',
      endedAt: String(start + 60_000),
      activeMs: '',
      command: '',
    };
    const audit = Array.from({ length: 102 }, (_, i) => ({
      at: start + i,
      action: 'pause',
      by: 'operator',
      who: '',
      reason: '',
    }));
    const events = Array.from({ length: 101 }, (_, i) => ({ at: start + i, event: 'state', text: `${i}` }) as const);
    const page = pageWith('', [], {
      run: runOf('', fields),
      audit: audit as AuditEntry[],
      history: { points: [], events },
    });
    const isOneOfMany = (line: string) => /^2027-01-15 08:00:00 UTC (pause operator|\d+)$/.test(line);
    const lines = linesOf(page).filter((line) => !isOneOfMany(line));
    expect(linesOf(page).filter(isOneOfMany)).toHaveLength(100 + 100);
    expect(lines).toMatchInlineSnapshot(`
      [
        "Run 20261120-1913-mxmm",
        "completed",
        "5 rows, 5 of them without a problem · http://localhost:8080",
        "not started to 2027-01-15 08:01:00 UTC",
        "Outcomes",
        "outcome rows share meaning",
        "deleted 5 100 % the API confirmed it",
        "all 5 100 %",
        "Pace",
        "deleting time 0 s",
        "requests 0",
        "attempts 0",
        "throttled 0",
        "waited 0 s",
        "Over time",
        "Nothing was measured.",
        "Shaded: nothing was sent. Dashed: an event. If there are many waits, only the longest are kept.",
        "Events",
        "1 earlier event",
        "at event",
        "Failures",
        "None.",
        "Guards",
        "No guard stopped it.",
        "Plan",
        "list 0.csv, 1.csv, 2.csv, 3.csv, 4.csv, 5.csv, 6.csv, 7.csv, 8.csv, 9.csv, 10.csv, 11.csv, 12.csv, 13.csv, 14.csv, 15.csv, 16.csv, 17.csv, 18.csv, 19.csv, 2 further files",
        "ids 5",
        "target http://localhost:8080",
        "kept for 1s",
        "deleted by its command",
        "submitted 2027-01-15 08:00:00 UTC",
        "Who did what",
        "2 earlier actions",
        "at what who why",
      ]
    `);
    expect(shapesOf(page)).toEqual([]);
  });
});

it.each([
  ['', '<b class="bad">completed</b>, but nothing shows that any of its ids was there'],
  ['1', '<b class="good">completed</b></p>'],
])('the page of a run that found none of its ids, with expectAbsent "%s", says so: %s', (expectAbsent, words) => {
  const run = runOf('', { state: 'completed', halt: '', rows: '3', ids: '3', ...gone, tallied: '1', expectAbsent });
  const page = pageWith('', [], { run });
  expect(page).toContain(words);
  expect(page.includes('3 of them without a problem')).toBe(expectAbsent !== '');
});

const gone = { failed: '0', deleted: '0', absent: '3' };

describe('the samples of failures', () => {
  it('are twenty of each reason, and one of each beyond the first many', () => {
    const samples = new FailureSamples();
    for (let code = 400; code < 500; code++) for (let n = 0; n < 25; n++) samples.add(row({ code: `http_${code}` }));
    for (const outcome of ['pending', 'deleted'] as const) samples.add(row({ outcome }));
    const groups = samples.list();
    expect(groups.map(({ count }) => count)).toEqual(new Array(100).fill(25));
    expect(new Set(groups.map((group) => group.samples.length))).toEqual(new Set([20, 1]));
  });
});
