import { describe, expect, it, onTestFinished } from 'vitest';
import { noShapes } from '../../../src/input/id-shapes.ts';
import { noRules } from '../../../src/ledger/run-rules.ts';
import { forecast, type Work } from '../../../src/model/forecast.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { bearerForm, defineResources, perResource } from '../../../src/model/resource.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import { idsText, planText, type ShownPlan } from '../../../src/terminal/plan-text.ts';
import { plainStyle } from '../../../src/terminal/style.ts';
import { unboundWork } from '../model/works.ts';
import { noCounts, reading } from './snapshots.ts';

const none = perResource(() => 0);

const work = { ...unboundWork(249_981), rate: parseRate('400/s') };
const at = Date.parse('2026-11-26T12:00Z');

/** What is shown of a plan of that work. */
const forecastOf = (given: Partial<Work>): Pick<ShownPlan, 'work' | 'forecast'> => ({
  work: { ...work, ...given },
  forecast: { ...forecast({ ...work, ...given }, at), zone: 'Europe/Berlin' },
});

const plan: ShownPlan = {
  toType: toTypeAnywhere,
  files: ['old.csv.gz'],
  retries: null,
  rows: 250_000,
  ids: { ...none, annotations: 249_981 },
  samples: ['a-1', 'a-2', 'a-3'],
  shapes: noShapes,
  column: 'id',
  rejected: { too_long: 2, empty_id: 5 },
  rejectsFile: 'rejects.csv',
  settled: { rejected: 7, duplicate: 12, protected: 0 },
  protectedRead: null,
  limited: null,
  baseUrl: 'https://api.example.com/x',
  account: '',
  tokenSource: 'EXPUNGE_TOKEN',
  firstUrl: 'https://api.example.com/x/v2/annotations/a-1',
  lastId: 'a-249981',
  endsWithoutNewline: false,
  ...noRules,
  kept: [],
  rate: [{ count: 400, perMs: 1_000 }],
  rateBefore: null,
  learned: null,
  limit: null,
  redisMs: 0.4,
  minGrace: null,
  ...forecastOf({}),
  canary: [],
  maxConcurrency: 64,
  seen: null,
  proof: [],
  existing: null,
  previous: null,
  overlapping: [],
};

const stopped = reading({
  target: { baseUrl: 'https://api.example.com/x', account: '' },
  stops: {
    target: { by: 'operator', who: 'ana', reason: 'they call us', at: 1 },
    processes: [],
    tokenless: [],
    alive: 1,
  },
});

describe('planText', () => {
  it('warns of a Redis that is far away, and only of that', () => {
    expect(planText({ ...plan, redisMs: 62 })).toContain(
      '  Redis     is 62 ms away: a run begins about 3.1 s later, and a pause or a stop takes up to 1.1 s; run expunge nearer to it',
    );
    for (const redisMs of [29, null]) expect(planText({ ...plan, redisMs })).not.toContain('Redis ');
  });

  it('says when it may send', () => {
    const window = 'Mon-Fri 22:00-06:00 Europe/Berlin';
    expect(planText({ ...plan, window })).toContain(`  Window    sends only ${window}\n`);
    expect(planText({ ...plan, window: 'always' })).not.toContain('Window');
  });

  it('says when it is paused', () => {
    const stopAt = Date.parse('2026-11-24T06:00Z');
    expect(planText({ ...plan, stopAt })).toContain('  Pauses    at 2026-11-24 06:00 UTC; resume continues it\n');
    const both = planText({ ...plan, stopAt, maxActiveMs: 5_400_000 });
    expect(both).toContain('at 2026-11-24 06:00 UTC, or after 1 h 30 min of deleting; resume continues it');
  });

  it('says where the canary stops, and what halts the run', () => {
    const text = planText({ ...plan, canary: [1, 10, 1_000], maxFailures: '2%' });
    expect(text).toContain('  Canary    after 1, 10, 1,000 ids it continues only if no more than 2% of them failed\n');
    expect(text).toContain('  Halts     when more than 2% of the ids failed or are unknown\n');
    expect(planText({ ...plan, canary: [1] })).toContain('after 1 id it continues only if none of them failed');
  });

  it('says how many of the ids are sent at most, if not all of them', () => {
    const atMost =
      '  At most   6,000 ids are sent, the first of the list, and the run halts; a higher --max-deletes continues it\n';
    expect(planText({ ...plan, maxDeletes: 6_000 })).toContain(atMost);
    expect(planText({ ...plan, maxDeletes: 249_981 })).not.toContain('At most');
  });

  it('says what comes in, what would be sent, where, and how fast', () => {
    expect(planText(plan).split('\n')).toEqual([
      '  Input     old.csv.gz',
      '            250,000 rows → 249,981 annotations to delete · 12 duplicates · 7 rejected',
      '  Rejected  empty_id 5, too_long 2 · all in rejects.csv',
      '  Target    https://api.example.com/x, token from EXPUNGE_TOKEN',
      '  Ids       a-1, a-2, a-3 (column id)',
      '  First     DELETE https://api.example.com/x/v2/annotations/a-1',
      '  Last id   a-249981',
      '  Pace      at most 400/s',
      '  Takes     at least 10 min 25 s at the 400/s of --rate, longer if the API is slower; ends Thu 13:10 Europe/Berlin at the earliest',
    ]);
  });

  it('says that the last id may be cut off', () => {
    expect(planText({ ...plan, endsWithoutNewline: true })).toContain(
      '  Last id   a-249981; the last line has no newline: if the file was cut off, this is not the whole id\n',
    );
    expect(planText({ ...plan, lastId: null })).not.toContain('Last id');
  });

  it('shows the invisible characters of ids, columns and files', () => {
    const odd = { samples: ['a\u200bb', 'a\u00a0b'], lastId: 'c\u202ed', column: 'id\ufeff', files: ['x\u200b.csv'] };
    const text = planText({ ...plan, ...odd });
    expect(text).toContain('  Ids       a\\u200bb, a\\u00a0b (column id\\ufeff)\n');
    expect(text).toContain('  Last id   c\\u202ed\n');
    expect(text).toContain('  Input     x\\u200b.csv\n');
  });

  it('says of which run it retries what, and that other runs did so before', () => {
    const chosen = { ...noCounts, failed: 1_208, unknown: 4 };
    const retries = { runId: 'r1', chosen, before: [] };
    expect(planText({ ...plan, retries }).split('\n')[0]).toBe(
      '  Retries   1,208 failed, 4 unknown from run r1 of old.csv.gz',
    );
    expect(planText({ ...plan, retries: { ...retries, before: ['r2', 'r3'] } }).split('\n')[1]).toBe(
      '            some may be settled: r3 retried ids of that run before',
    );
  });

  it('breaks its lines between words where the terminal is narrower', () => {
    expect(planText(plan, plainStyle, 60).split('\n').slice(0, 4)).toEqual([
      '  Input     old.csv.gz',
      '            250,000 rows → 249,981 annotations to delete ·',
      '            12 duplicates · 7 rejected',
      '  Rejected  empty_id 5, too_long 2 · all in rejects.csv',
    ]);
  });

  it.each([
    [1_203, 17, '  Protected 1,203 ids read, 17 rows match'],
    [1, 1, '  Protected 1 id read, 1 row matches'],
    [
      1_203,
      0,
      '  Protected 1,203 ids read, none of them occurs in this list: check that it is the right file, and that its ids have the same format',
    ],
  ])('says that %i protected ids were read and %i rows match', (protectedRead, matched, line) => {
    expect(
      planText({ ...plan, protectedRead, settled: { ...plan.settled, protected: matched } }).split('\n'),
    ).toContain(line);
    expect(planText(plan)).not.toContain('Protected');
  });

  it('says what it would wait for', () => {
    expect(
      planText({ ...plan, seen: stopped })
        .split('\n')
        .at(-1),
    ).toBe(
      '  Waits     Stopped for all runs of this target by ana: they call us. Resume with: expunge start-all --base-url https://api.example.com/x',
    );
  });

  it('breaks no command into lines, because a shell would take the first one for all of it', () => {
    const lines = planText({ ...plan, seen: stopped }, plainStyle, 50).split('\n');
    expect(lines.at(-1)!.trim()).toBe('expunge start-all --base-url https://api.example.com/x');
    expect(lines.at(-2)).toMatch(/ Resume with:$/);
  });

  it('promises no time without a rate', () => {
    const text = planText({ ...plan, rate: null, ...forecastOf({ rate: null }) });
    expect(text).toContain('as fast as the API and 64 requests at once allow');
    expect(text).toContain('  Takes     not known before the first requests: no rate is set, and none was learned');
    expect(planText({ ...plan, ...forecastOf({ requests: 0 }) })).not.toContain('Takes');
  });

  it.each([
    [null, 10_800_000, 'starts at 412/s, learned 3 h ago'],
    [null, 20_000, 'starts at 412/s, as learned'],
    ['600/s', 90_000, 'starts at 412/s, learned 1 min ago; at most 600/s'],
    ['200/s', 90_000, 'at most 200/s'],
  ])('begins at what was learned, unless --rate %s is lower', (text, silentMs, words) => {
    const learned = { perSecond: 412, silentMs, isCapped: false, wasRefused: true, lowAfter: null };
    const lines = planText({ ...plan, learned, rate: text === null ? null : parseRate(text) }).split('\n');
    expect(lines).toContain(`  Pace      ${words}`);
  });

  it.each([
    [null, 0, 'not refused up to 50/s'],
    [null, 10_800_000, 'not refused up to 50/s, 3 h ago'],
    ['200/s', 0, 'not refused up to 50/s; at most 200/s'],
  ])('claims no more than what was answered, where nothing was refused yet (--rate %s)', (text, silentMs, words) => {
    const learned = { perSecond: 50, silentMs, isCapped: false, wasRefused: false, lowAfter: null };
    const lines = planText({ ...plan, learned, rate: text === null ? null : parseRate(text) }).split('\n');
    expect(lines).toContain(`  Pace      ${words}`);
  });

  it('says which answers a low rate comes from, and how to forget it', () => {
    const lowAfter = { refused: 1, answers: 583, agoMs: 10_800_000 };
    const learned = { perSecond: 12, silentMs: 10_800_000, isCapped: false, wasRefused: true, lowAfter };
    const text = planText({ ...plan, learned, rate: null });
    expect(text).toContain('starts at 12/s, learned 3 h ago: 1 of 583 requests was refused, the last 3 h ago');
    expect(text).toContain('\n            Forget it: expunge target forget-rate --base-url https://api.example.com');
    for (const other of [{ rate: parseRate('10/s') }, { rate: null, learned: { ...learned, lowAfter: null } }])
      expect(planText({ ...plan, learned, ...other })).not.toContain('forget-rate');
  });

  it('says which other rate a resumed run had until now', () => {
    const until = (text: string | null) =>
      planText({ ...plan, rate: parseRate('200/s'), rateBefore: text === null ? null : parseRate(text) });
    expect(until('50/s')).toContain('until now at most 50/s; omit --rate to keep that');
    for (const text of [null, '200/s']) expect(until(text)).not.toContain('until now');
  });

  it('begins at the limit of the target', () => {
    const learned = { perSecond: 200, silentMs: 0, isCapped: true, wasRefused: false, lowAfter: null };
    expect(planText({ ...plan, learned, rate: null })).toContain(
      '  Pace      starts at 200/s, the limit of the target',
    );
  });

  it('forecasts with the quota where that takes longer than the pace', () => {
    const rate = parseRate('400/s,100000/day');
    const text = planText({ ...plan, rate, ...forecastOf({ rate }) });
    expect(text).toContain('  Pace      at most 400/s, at most 100,000 a day\n');
    expect(text).toContain(
      '  Takes     at least 2 d at the 400/s of --rate, longer if the API is slower; waits for a quota; ends Sat 13:',
    );
  });

  it('shows what operators allow over all runs of the target', () => {
    const limit = { who: 'ana', reason: 'as agreed', at: 1, rate: parseRate('20/s,250/day'), used: [60], until: 0 };
    expect(planText({ ...plan, limit })).toContain('  Limits    limit 20/s; 250 a day, 60 used; by ana: as agreed\n');
  });

  it('says that a limit left rows out', () => {
    expect(planText({ ...plan, limited: 1_000 })).toContain('only the first 1,000 rows are in this run');
  });

  it('says which run would go on, how it stands and why, and forecasts only what is left', () => {
    const existing = {
      runId: 'r1',
      state: 'paused' as const,
      reason: 'release',
      who: 'ana',
      left: 4_000,
      isJoined: false,
    };
    const text = planText({ ...plan, existing, ...forecastOf({ requests: 4_000 }) });
    expect(text).toContain('Resumes   run r1 of the same list, 4,000 left (paused by ana: release)');
    expect(text).toContain('at least 10 s');
  });

  it('says that another command works on the run', () => {
    const existing = { runId: 'r1', state: 'running' as const, reason: '', who: 'ana', left: 4_000, isJoined: true };
    expect(planText({ ...plan, existing })).toContain('(running; another command is deleting it; this one joins)');
  });

  it('names the run before of the same list, and unfinished runs of another version of it', () => {
    const endedAt = Date.UTC(2026, 10, 20, 9, 30);
    const previous = {
      runId: 'r1',
      state: 'completed' as const,
      endedAt,
      counts: { ...noCounts, deleted: 5, absent: 2 },
    };
    const overlapping = [
      {
        runId: 'r2',
        state: 'paused' as const,
        reason: '',
        who: 'ana',
        left: 1,
        files: ['old.csv'],
        protectedRead: null,
      },
    ];
    const lines = planText({ ...plan, previous, overlapping }).split('\n');
    expect(lines.slice(-2)).toEqual([
      '  Previous  run r1 of the same list completed on 2026-11-20 09:30 UTC: 5 deleted, 2 absent',
      '  Overlaps  run r2 of old.csv has 1 id left (paused by ana); the lists differ, so both would run',
    ]);
  });

  it('says that an unfinished run of the same file protects nothing, where this one does', () => {
    const run = { runId: 'r2', state: 'running' as const, reason: '', who: '', left: 9, files: ['old.csv'] };
    const words = 'it deletes ids protected here. Cancel it first: expunge cancel r2';
    const says = (matched: number, protectedRead: number | null) =>
      planText({
        ...plan,
        settled: { ...plan.settled, protected: matched },
        overlapping: [{ ...run, protectedRead }],
      }).includes(words);
    expect([says(2, null), says(0, null), says(2, 2)]).toEqual([true, false, false]);
  });

  it('says that an unfinished run of the same file protects ids, where this one does not', () => {
    const run = { runId: 'r2', state: 'running' as const, reason: '', who: '', left: 9, files: ['old.csv'] };
    const says = (read: number | null, previous: number | null) =>
      planText({ ...plan, protectedRead: read, overlapping: [{ ...run, protectedRead: previous }] }).includes(
        'and that one protects 5 ids, but this one protects none: add --protect',
      );
    expect([says(null, 5), says(5, 5), says(null, null)]).toEqual([true, false, false]);
  });

  it.each([
    ['https://api.example.com/v2', '/v2', 'https://api.example.com'],
    ['https://api.example.com/x/v1', '/v1', 'https://api.example.com/x'],
    ['https://api.example.com/v2/annotations', '/v2/annotations', 'https://api.example.com'],
    ['https://api.example.com/x/V2/Views', '/V2/Views', 'https://api.example.com/x'],
    ['https://api.example.com/v2/views/%7Bid%7D', '/v2/views/%7Bid%7D', 'https://api.example.com'],
  ])('warns of an address that holds what is appended to it: %s', (baseUrl, end, without) => {
    expect(planText({ ...plan, baseUrl })).toContain(
      `the address ends in ${end}, and /v2/… is appended to it; use --base-url ${without} unless the API is really there`,
    );
  });

  it.each([
    'https://api.example.com',
    'https://api.example.com/v2/x',
    'https://api.example.com/v2/viewsets',
    'https://api.example.com/annotations',
    'https://v2.example.com/api',
    'http://v2',
  ])('does not warn of another address: %s', (baseUrl) => {
    expect(planText({ ...plan, baseUrl })).not.toContain('is appended to it');
  });

  it.each([
    ['/v1/dashboards/{id}', true],
    ['/dashboards/{id}', false],
  ])('warns of a version in the address only if the path of the resource begins with one: %s', (path, warns) => {
    onTestFinished(() => defineResources({}));
    defineResources({ dashboards: { path, success: [200], absent: [404], ...bearerForm } });
    const text = planText({ ...plan, ids: { dashboards: 5 }, baseUrl: 'https://api.example.com/v1' });
    expect(text.includes('the address ends in /v1, and /v1/… is appended to it')).toBe(warns);
  });

  it('is shown where its resource is not defined', () => {
    const ids = { ...none, dashboards: 2 };
    expect(planText({ ...plan, ids, baseUrl: 'https://api.example.com/v1' })).toContain('2 dashboards to delete');
  });

  it('makes the host stand out', () => {
    expect(planText(plan, { ...plainStyle, bold: (text) => `*${text}*` })).toContain('https://*api.example.com*/x');
  });

  it('names each resource by its count', () => {
    expect(idsText({ ...none, annotations: 5, views: 1 })).toBe('5 annotations and 1 view');
    expect(idsText(none)).toBe('nothing');
  });
});
