import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { RunChange } from '../../../src/ledger/changes.ts';
import type { KeptPlan } from '../../../src/ledger/kept-plans.ts';
import { parseRun } from '../../../src/ledger/run.ts';
import type { TargetState } from '../../../src/limiter/read-target.ts';
import { targetOf } from '../../../src/model/target.ts';
import {
  lossEvent,
  occurrenceEvent,
  outageChanges,
  outageEvent,
  pausedEvent,
  planEvent,
  recoveredOccurrenceEvent,
  refusedEvent,
  runEvent,
  stallChanges,
  stallEvent,
  startingEvent,
  waitingEvent,
} from '../../../src/notify/events.ts';

const at = Date.parse('2027-01-01T12:00Z');
const target = targetOf('https://api.example.com/x', 'acme');
const stored = {
  state: 'completed',
  baseUrl: target.baseUrl,
  account: 'acme',
  rows: '5',
  ids: '5',
  tallied: '1',
  deleted: '3',
  failed: '2',
  createdBy: 'ana@here',
  note: 'OPS-1',
};
const run = parseRun('r1', stored);
const change: RunChange = { n: 2, at, state: 'running', reason: '', by: 'operator', who: 'ana@here', halt: '' };

describe('the event of a run', () => {
  it('has an id from the run and the number of the change, so that it is the same each time', () => {
    const event = runEvent(run, change);
    expect(event).toMatchObject({ id: 'run-r1-2', type: 'run.running', timestamp: '2027-01-01T12:00:00.000Z' });
    expect(event.text).toBe('Run r1 on api.example.com (acme) is running by ana@here');
    expect(runEvent(run, change)).toEqual(event);
  });

  it('says before its start what it will delete and when, how to cancel it, and where its page is', () => {
    const starts = '2027-01-01T12:15:00.000Z';
    const early = { ...run, state: 'running' as const, startsAt: Date.parse(starts), rows: 9, files: ['old.csv'] };
    const event = startingEvent(early, change, 'https://ops.example.com');
    expect(event).toMatchObject({
      id: `waiting-r1-grace-${Date.parse(starts)}`,
      type: 'run.waiting',
      data: {
        why: 'grace',
        starts_at: starts,
        until: starts,
        pending: 4,
        files: ['old.csv'],
        next: 'expunge cancel r1',
      },
    });
    expect(event.data.url).toBe('https://ops.example.com/runs/r1');
    expect(event.text).toBe(
      `Run r1 by ana@here: OPS-1 will delete 4 ids of old.csv on api.example.com (acme): it starts at ${starts}, and nothing is sent before. ` +
        'Cancel it: expunge cancel r1 · https://ops.example.com/runs/r1',
    );
    expect(startingEvent(early, change, '')).toMatchObject({ data: { url: null } });
    expect(startingEvent(early, change, '').text).toMatch(/Cancel it: expunge cancel r1$/);
  });

  it('says how a run ended', () => {
    const event = runEvent(run, { ...change, state: 'completed', reason: 'a former one' });
    expect(event.text).toBe('Run r1 on api.example.com (acme) is completed: 5 rows: 3 deleted, 2 failed');
    expect(event.data).toMatchObject({ state: 'completed', reason: '', deleted: 3, failed: 2, pending: 0, exit: 3 });
  });

  it('says of a run that found none of its ids that it did not go well', () => {
    const gone = parseRun('r1', { ...stored, rows: '5', deleted: '0', failed: '0', absent: '5' });
    const completed = { ...change, state: 'completed' } as const;
    const event = runEvent(gone, completed);
    expect(event.text).toMatch(/ is completed, but nothing shows that any of its ids was there: 5 rows: 5 absent$/);
    expect(event.data).toMatchObject({ exit: 3 });
    const expected = runEvent({ ...gone, expectAbsent: true }, completed);
    expect(expected.text).toMatch(/ is completed: 5 rows: 5 absent$/);
    expect(expected.data).toMatchObject({ exit: 0 });
  });

  it('says why a run is halted or paused', () => {
    const halted = {
      ...change,
      state: 'halted',
      by: 'guard',
      who: '',
      reason: '50 ids were refused',
      halt: 'unexpected_answers',
    };
    const event = runEvent(run, halted as RunChange);
    expect(event.text).toBe('Run r1 on api.example.com (acme) is halted: 50 ids were refused');
    const now = { ...run, state: 'halted', halt: 'unexpected_answers' } as const;
    const examples = [
      { id: 'v-1', outcome: 'failed', code: 'http_403', excerpt: 'not\nyours' },
      { id: 'v-2', outcome: 'failed', code: 'http_403', excerpt: '' },
    ] as const;
    const shown = runEvent(now, halted as RunChange, examples);
    expect(shown.data).toMatchObject({ examples });
    expect(shown.text).toBe(
      `${event.text}; for example v-1: failed, http_403 "not yours"; v-2: failed, http_403; ` +
        'all of them: expunge report r1 --only failed',
    );
    expect(event.data).toMatchObject({ halt: 'unexpected_answers', by: 'guard', exit: 4 });
    const paused = runEvent(run, { ...change, state: 'paused', reason: 'release' });
    expect(runEvent(run, { ...change, state: 'paused', reason: 'a\n\u2028b' }).text).toMatch(/: a b$/);
    expect(paused.text).toBe('Run r1 on api.example.com (acme) is paused by ana@here: release');
  });
});

describe('the event of a schedule', () => {
  const of = { target, name: 'nightly', at, reason: 'the list is empty: 0 rows' };

  it('names the guard that refused a list, and the occurrence', () => {
    const event = refusedEvent(of, at - 5, 'empty');
    expect(event.text).toContain('Schedule nightly on api.example.com (acme) made no run: its guard "empty" refused');
    expect([event.id, event.type]).toEqual([`schedule-${target.fp}-nightly-refused-${at - 5}`, 'schedule.refused']);
  });

  it('says how many occurrences had come to what, and why', () => {
    const text = (trouble: Parameters<typeof occurrenceEvent>[1]) =>
      occurrenceEvent({ ...of, reason: 'a\nb' }, trouble, at, 3).text;
    expect(text('failed')).toMatch(
      /^Schedule nightly on api.example.com \(acme\) made no run: it got no complete list: a b$/,
    );
    expect(text('missed')).toMatch(/ missed 3 occurrences: a b$/);
    expect(text('skipped')).toMatch(/ skipped 3 occurrences: a b$/);
    expect(text('empty')).toMatch(/ had nothing to do in 3 occurrences: a b$/);
  });

  it('says who paused it', () => {
    expect(pausedEvent(of, 'empty', '').text).toContain('is paused by its guard "empty": the list is empty');
    expect(pausedEvent({ ...of, reason: '' }, '', 'ana@here').text).toMatch(/is paused by ana@here$/);
  });
});

const none = { outage: null, stall: null };

describe('an outage', () => {
  const state = (kind: string | null, since = 1_000) =>
    ({ at: 61_000, outage: kind === null ? null : { kind, reason: 'errors', since } }) as TargetState;

  it.each([
    ['begins', null, state('unreachable'), [[null, 1_000]]],
    ['is told once', 1_000, state('trouble'), []],
    ['ends', 1_000, state(null), [[1_000, null]]],
    [
      'is told as two if another one began meanwhile',
      500,
      state('trouble'),
      [
        [500, null],
        [null, 1_000],
      ],
    ],
    ['is not throttling', null, state('refused'), []],
    ['is not a wait', null, state('held'), []],
    ['is none where nothing was ever sent', 1_000, null, []],
  ])('%s', (_, outage, limiter, changes) => {
    expect(outageChanges({ ...none, outage }, limiter).map(({ from, to }) => [from, to])).toEqual(changes);
  });

  it('and its end have ids of their own, from when it began', () => {
    const [begun] = outageChanges(none, state('trouble'));
    const [ended] = outageChanges({ ...none, outage: 1_000 }, state(null));
    const [first, last] = [outageEvent(target, begun!), outageEvent(target, ended!)];
    expect([first.type, first.text]).toEqual([
      'target.outage',
      'Outage: no request to api.example.com (acme) succeeds: errors',
    ]);
    expect([last.type, last.id]).toEqual(['target.recovered', `${first.id}-over`]);
    expect(last.text).toBe('Outage over: api.example.com (acme) answers again, after 1 min');
  });
});

describe('that nothing was accepted for a quarter of an hour', () => {
  const state = (stalled: number | null, more: Partial<TargetState> = {}) =>
    ({
      at: 2_000_000,
      stalled: stalled === null ? null : { since: stalled, ms: 900_000 },
      ...more,
    }) as TargetState;
  const outage = (kind: string) => ({ kind, reason: 'errors', since: 1_000, countsTries: false }) as never;

  it.each<[string, number | null, TargetState, [number | null, number | null, boolean][]]>([
    ['is told', null, state(1_000), [[null, 1_000, false]]],
    ['is told once', 1_000, state(1_000), []],
    ['is not told of an outage, which was', null, state(1_000, { outage: outage('trouble') }), []],
    ['is told of throttling', null, state(1_000, { outage: outage('refused') }), [[null, 1_000, false]]],
    ['ends', 1_000, state(null, { isAccepting: true }), [[1_000, null, true]]],
    ['ends quietly with the work', 1_000, state(null, { isAccepting: false }), [[1_000, null, false]]],
  ])('%s', (_, stall, limiter, changes) => {
    const found = stallChanges({ ...none, stall }, limiter);
    expect(found.map(({ from, to, isAccepting }) => [from, to, isAccepting])).toEqual(changes);
  });

  it('is one event for all workers, with why, and one for its end', () => {
    const hold = { kind: 'retry_after' as const, reason: 'the server answered 429', leftMs: 1_000, since: null };
    const [begun] = stallChanges(none, state(1_000, { hold }));
    const event = stallEvent(target, begun!)!;
    expect(event).toMatchObject({ id: `stalled-${target.fp}-1000`, type: 'target.stalled' });
    expect(event.text).toBe(
      'Nothing was accepted by api.example.com (acme) for 15 min: the server answered 429; no id is lost, and the runs keep trying',
    );
    const [ended] = stallChanges({ ...none, stall: 1_000 }, state(null, { isAccepting: true }));
    expect(stallEvent(target, ended!)).toMatchObject({ id: `${event.id}-over`, type: 'target.recovered' });
    expect(stallEvent(target, { ...ended!, isAccepting: false })).toBeNull();
  });
});

const plan: KeptPlan = {
  id: `${target.fp}-0a1b2c3d`,
  ...target,
  name: 'old.csv',
  by: 'ana@here',
  at,
  reason: 'OPS-1',
  approver: 'ben',
  ids: 3,
  bytes: 100,
  expiresAt: at + 86_400_000,
  isDraft: false,
  server: { process: 'p', history: '', isDurable: true, ancestors: [] },
  state: 'waiting',
  decision: null,
};
const decision = { who: 'ben', at: at + 1, reason: 'too many', run: '' };

describe('the event of a plan', () => {
  it('names who made it, who has to decide and, once that is done, who did and why', () => {
    const waiting = planEvent(plan);
    expect(waiting).toMatchObject({
      id: `plan-${plan.id}-waiting`,
      type: 'plan.waiting',
      timestamp: '2027-01-01T12:00:00.000Z',
      data: { plan: plan.id, list: 'old.csv', ids: 3, planned_by: 'ana@here', approve_by: 'ben', reason: 'OPS-1' },
    });
    expect(waiting.data).not.toHaveProperty('decided_by');
    expect(waiting.text).toContain('of ana@here to delete 3 ids on api.example.com');
    const refused = planEvent({ ...plan, state: 'refused', decision });
    expect(refused).toMatchObject({
      type: 'plan.refused',
      timestamp: '2027-01-01T12:00:00.001Z',
      data: { planned_by: 'ana@here', decided_by: 'ben', decision: 'too many', run: null },
    });
    const applied = planEvent({ ...plan, state: 'applied', decision: { ...decision, run: 'r1' } });
    expect(applied).toMatchObject({
      type: 'plan.applied',
      data: { planned_by: 'ana@here', decided_by: 'ben', run: 'r1' },
    });
  });
});

describe('the page about notifications', () => {
  const page = readFileSync('src/help/notifications.md', 'utf8');
  const rows = page.split('\n').filter((line) => /^\| `\w+\.\w+`/.test(line));
  const named = new Set(
    rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`(\w+\.\w+)`/g)].map(([, type]) => type)),
  );
  const of = { target, name: 'nightly', at, reason: '' };
  const outage = { from: null, to: 1, reason: 'errors', at };
  const stall = { from: null, to: 1, ms: 900_000, reason: '', isAccepting: true, at };
  const waiting = { why: 'limit', text: 'the limit is used up', since: null, until: at, by: '', next: null } as const;
  const events = [
    ...(['running', 'paused', 'halted', 'completed', 'cancelled'] as const).map((state, n) =>
      runEvent(run, { ...change, state, n }),
    ),
    waitingEvent(run, [waiting], at - 900_000, at),
    refusedEvent(of, at, 'empty'),
    pausedEvent(of, '', 'ana'),
    ...(['failed', 'missed', 'skipped', 'empty'] as const).map((trouble) => occurrenceEvent(of, trouble, at, 1)),
    recoveredOccurrenceEvent(of, at, 1),
    outageEvent(target, outage),
    outageEvent(target, { ...outage, from: 1, to: null }),
    stallEvent(target, stall)!,
    stallEvent(target, { ...stall, from: 1, to: null })!,
    planEvent(plan),
    planEvent({ ...plan, state: 'applied', decision: { ...decision, run: 'r1' } }),
    planEvent({ ...plan, state: 'refused', decision }),
    lossEvent(target, { id: 'l1', what: 'schedule nightly', at }),
  ];

  it('names each type of event that there is, and no other', () => {
    expect([...named].toSorted()).toEqual([...new Set(events.map(({ type }) => type))].toSorted());
  });

  it.each(events)('$type has an id of its own, a time and one line for people', (event) => {
    expect(events.filter(({ id }) => id === event.id)).toHaveLength(1);
    expect(event.text).not.toMatch(/[\n\r]|undefined|null/);
    expect(Date.parse(event.timestamp)).toBeGreaterThan(0);
  });
});
