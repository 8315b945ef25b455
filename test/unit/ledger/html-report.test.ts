import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AuditEntry } from '../../../src/ledger/audit.ts';
import { samplesMax } from '../../../src/ledger/history.lua.ts';
import type { HistoryPoint } from '../../../src/ledger/history.ts';
import { FailureSamples, type PageFacts, pageOf } from '../../../src/ledger/html-report.ts';
import { measuresOf } from '../../../src/ledger/measures.ts';
import type { OutcomeRow } from '../../../src/ledger/outcome-rows.ts';
import { parseRun } from '../../../src/ledger/run.ts';
import { idOutcomes } from '../../../src/model/outcome.ts';
import { tagsOf, textOf } from '../../support/html.ts';

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
    ...{ state: 'halted', halt: 'forbidden', baseUrl: 'http://localhost:8080', command: text, doubt: text },
    ...{ doubtSince: '1', files: JSON.stringify([text]), rows: '10', ids: '10', failed: '4', deleted: '5' },
    ...{ createdAt: String(start), startedAt: String(start), keepMs: '1000', activeMs: '1000', ...fields },
  });
}

function pageWith(text: string, rows: OutcomeRow[], wish: Partial<PageFacts> = {}): string {
  const samples = new FailureSamples();
  for (const one of rows) samples.add(one);
  const entry: AuditEntry = { at: start, action: 'halt', by: 'guard', who: text, reason: text, rate: text };
  const history = { points: [point(0)], events: [{ at: start, event: 'state', text } as const] };
  const facts = { run: runOf(text), history, measures: measuresOf({}), audit: [entry], failures: samples.list() };
  return pageOf({ ...facts, ...wish });
}

function point(n: number): HistoryPoint {
  return {
    ...{ from: start + 1_000 * n, to: start + 1_000 * (n + 1), activeMs: 1_000, requests: 100, refused: 3 },
    ...{ waitedMs: 0, achieved: 97 + (n % 7) / 3, allowed: 400 + n, inFlight: 3.3 + n, takeovers: 0, retried: n % 4 },
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
      history: { points: Array.from({ length: samplesMax }, (_, n) => point(n)), events },
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
