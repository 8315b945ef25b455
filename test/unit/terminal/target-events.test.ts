import { describe, expect, it, test } from 'vitest';
import { timeOfDay } from '../../../src/format.ts';
import { type AuditEntry, auditLength } from '../../../src/ledger/audit.ts';
import type { TargetState } from '../../../src/limiter/read-target.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { describePace } from '../../../src/terminal/pace.ts';
import { auditText, eventText, limitText, TargetEvents, throttleLines } from '../../../src/terminal/target-events.ts';
import { snapshot } from './snapshots.ts';
import { target } from './target-states.ts';

describe('audit text', () => {
  const at = Date.UTC(2026, 10, 20, 16, 6, 7, 400);
  const entry: AuditEntry = { at, action: 'pause', by: 'operator', who: 'ana', reason: '' };

  test('an audit trail is told in aligned lines: when, what, by whom, why', () => {
    const entries: AuditEntry[] = [
      { ...entry, reason: 'release\nwindow \u001b[31m' },
      { ...entry, action: 'rate', rate: '200/s' },
      { ...entry, action: 'rate', rate: null },
      { ...entry, action: 'start', expectAbsent: true },
      { ...entry, action: 'halt', by: 'guard', who: '', halt: 'forbidden', reason: 'all of the first 20' },
    ];
    expect(auditText(entries)).toEqual([
      '2026-11-20 16:06:07 UTC  pause                ana    release window \\u001b[31m',
      '2026-11-20 16:06:07 UTC  rate 200/s           ana',
      '2026-11-20 16:06:07 UTC  rate none            ana',
      '2026-11-20 16:06:07 UTC  resume expectAbsent  ana',
      '2026-11-20 16:06:07 UTC  halt forbidden       guard  all of the first 20',
    ]);
  });

  test('the first start of a run is no going on, a later one is', () => {
    const told = tell(['submit', 'start', 'pause', 'start', 'halt', 'start']);
    expect(told).toEqual(['submit', 'start', 'pause', 'resume', 'halt', 'resume']);
  });

  test('a start is told as what it was where only the last entries are shown', () => {
    expect(tell(['submit', 'start', 'pause'], 2)).toEqual(['start', 'pause']);
    expect(tell(['submit', 'start', 'pause', 'start'], 2)).toEqual(['pause', 'resume']);
  });

  test('no start is told as the first where the oldest entries have gone', () => {
    const kept = ['submit', ...Array.from({ length: auditLength }, (_, i) => (i % 2 === 0 ? 'start' : 'pause'))];
    expect(tell(kept)).not.toContain('start');
  });

  /** What is told of these actions, the oldest first. */
  function tell(actions: string[], shown?: number): string[] {
    const lines = auditText(
      actions.map((action) => ({ ...entry, action })),
      shown,
    );
    return lines.map((line) => line.slice(25).replace('ana', '').trim());
  }
});

test('what holds sending back is a warning, its end is not', () => {
  const events = new TargetEvents();
  const { at } = target();
  const outage = { kind: 'unreachable', since: at, reason: 'no route' } as const;
  const seen = [null, outage, null].map((now) => events.observe(target({ outage: now as never }), 0, 0));
  expect(seen.map(([event]) => event && [event.level, event.message])).toEqual([
    undefined,
    ['warn', 'outage'],
    ['info', 'outage over'],
  ]);
});

/** What is told of a target that changes like this, a look each `everyMs`; of each step the time it is seen at. */
function told(steps: Partial<TargetState>[], refreshes: number[] = [], everyMs = 1_000): [number, string][] {
  const events = new TargetEvents();
  const { at } = target();
  return steps.flatMap((changes, i) =>
    events
      .observe(target({ at: at + i * everyMs, ...changes }), refreshes[i] ?? 0, i * everyMs)
      .map((event): [number, string] => [i, eventText(event)]),
  );
}

const hold = (leftMs: number) => ({
  hold: {
    kind: 'retry_after' as const,
    reason: 'the server answered 429 and sent Retry-After 30',
    leftMs,
    since: null,
  },
});
const outage = {
  outage: {
    kind: 'trouble' as const,
    reason: 'the API answers 503 to everything',
    since: target().at + 1_000,
    countsTries: false,
  },
};
const times = <T>(n: number, value: T): T[] => Array.from({ length: n }, () => value);

describe('what is told of a target', () => {
  it('is nothing as long as nothing changes', () => {
    expect(told(times(100, {}))).toEqual([]);
  });

  it('is the first limit, once it is sure', () => {
    const steps = [
      ...times(3, { limitFound: 0 }),
      { limitFound: 372 },
      { limitFound: 0 },
      ...times(90, { limitFound: 303 }),
    ];
    expect(told(steps)).toEqual([[9, 'limit reached: the server throttles above about 303/s']]);
  });

  it('is an outage and its end', () => {
    expect(told([{}, outage, outage, outage, {}, {}])).toEqual([
      [1, 'outage: the API answers 503 to everything'],
      [4, 'outage over: it lasted 3 s'],
    ]);
  });

  it('is no outage where everything is throttled: a window that is spent is met again and again', () => {
    const spent = { outage: { ...outage.outage, kind: 'refused' as const } };
    expect(told([{}, spent, {}, spent, {}])).toEqual([]);
  });

  it('is an outage that was there before', () => {
    expect(told([outage])).toHaveLength(1);
  });

  it('is a longer wait and its end, once a minute', () => {
    const waits = times(10, [hold(5_000), hold(4_000), {}]).flat();
    expect(told(waits)).toEqual([
      [0, 'waiting: the server answered 429 and sent Retry-After 30; no id uses up an attempt'],
      [2, 'resumed: after waiting for 2 s'],
    ]);
    expect(told(times(40, [hold(5_000), {}]).flat())).toHaveLength(4);
    expect(told([hold(1_000), {}])).toEqual([]);
  });

  it('is a new token, once a minute', () => {
    const refreshes = Array.from({ length: 70 }, (_, i) => i);
    expect(told(times(70, {}), refreshes)).toEqual([
      [1, 'token refreshed: 1 × so far'],
      [61, 'token refreshed: 61 × so far'],
    ]);
  });
});

describe('target text', () => {
  const now = Date.UTC(2026, 10, 20, 16, 0);

  it('what holds a target is told with its end or its beginning, and why', () => {
    const hold = {
      kind: 'retry_after' as const,
      reason: 'the server answered 429\u001b[31m',
      leftMs: 3_540_000,
      since: null,
    };
    const outage = {
      kind: 'trouble' as const,
      reason: 'the API answers 503 to everything',
      since: now - 600_000,
      countsTries: false,
    };
    expect(throttleLines(target({ hold, outage, advised: 0.5 }), now)).toEqual([
      `nothing is sent until ${timeOfDay(now + 3_540_000, now)} (59 min): the server answered 429\\u001b[31m`,
      'at most 30/min: the server reports that its limit is almost used up',
      `outage since ${timeOfDay(now - 600_000, now)}: the API answers 503 to everything; one id is tried from time to time`,
    ]);
    expect(throttleLines(target(), now)).toEqual([]);
    const old = { outage: { ...outage, kind: 'trouble' as const, reason: 'no route' }, silentMs: 840_000 };
    expect(throttleLines(target(old), now)).toEqual(['in an outage when it was used last, 14 min ago: no route']);
    expect(throttleLines(target({ ...old, outage: { ...old.outage, kind: 'held' } }), now)).toEqual([]);
  });

  it('a limit is told with what is used of it, who set it and why', () => {
    const limit = { rate: parseRate('200/s,6000/min,100000/day'), who: 'ana', reason: 'as\nagreed', at: now };
    const used = { ...limit, used: [6_000, 9_000], until: now + 60_000 };
    const words = `limit 200/s; 6,000 a minute, 6,000 used; 100,000 a day, 9,000 used; it allows more from ${timeOfDay(now + 60_000, now)}`;
    expect(limitText(used, now)).toBe(`${words}; by ana: as agreed`);
    expect(limitText({ ...limit, rate: parseRate('5/s'), reason: '', used: [], until: 0 }, now)).toBe(
      'limit 5/s; by ana',
    );
  });

  it('a run that goes as fast as the limit of its target allows says so, also where it does not use all of it', () => {
    const limited = { rate: 200, ceiling: 200, limitFound: 0 };
    expect(describePace(snapshot({ limiter: target({ ...limited, use: 0.98 }) }))).toBe(
      'Deleting at 200/s, as the limit of the target allows.',
    );
    expect(describePace(snapshot({ limiter: target({ ...limited, use: 0.2 }) }))).toBe(
      'Deleting; the limit of the target allows 200/s.',
    );
  });
});
