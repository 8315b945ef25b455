import { describe, expect, it, test } from 'vitest';
import { RunMeter } from '../../../src/delete/meters.ts';
import { type Answer, verdictOf, verdictTable, waitStatuses } from '../../../src/delete/verdict.ts';
import { formatOnStatus, parseOnStatus } from '../../../src/model/on-status.ts';
import {
  classifyStatus,
  describeMeaning,
  findStatusFacts,
  isAmbiguous,
  isRefusal,
  isThrottling,
  type Meaning,
  parseStatusRanges,
  type StatusAction,
  statusActions,
  statusClasses,
  statusesText,
  statusFacts,
  statusRanges,
} from '../../../src/model/status.ts';

const answered = (status: number): Answer => ({ kind: 'status', status, headers: {}, body: '', authorization: '' });
const every = Array.from({ length: 800 }, (_, i) => 200 + i);
const throttled = every.filter((status) => findStatusFacts(status).signal === 'refused');

describe('the table of statuses', () => {
  it('has a row for each status from 200 on, and every row decides about what it names', () => {
    const ranges = statusClasses.flatMap(statusRanges);
    expect(every.filter((status) => !ranges.some(([from, to]) => status >= from && status <= to))).toEqual([]);
    const named = statusClasses.flatMap((name) =>
      statusRanges(name).flatMap(([from, to]) => (from === to ? [[from, name] as const] : [])),
    );
    expect(named.filter(([status, name]) => classifyStatus(status) !== name)).toEqual([]);
    expect(statusClasses.filter((name) => every.every((status) => classifyStatus(status) !== name))).toEqual([]);
  });

  it('says of each status the same as the verdict: what may have been executed', () => {
    const told = every.map((status) => {
      const verdict = verdictOf(answered(status), false);
      return [
        status,
        'ambiguous' in verdict ? verdict.ambiguous : verdict.kind === 'settle' && verdict.outcome === 'unknown',
      ];
    });
    expect(told.filter(([status, ambiguous]) => isAmbiguous(status as number) !== ambiguous)).toEqual([]);
    expect([isAmbiguous(501), isAmbiguous(505), isAmbiguous(500), isAmbiguous(408), isAmbiguous(202)]).toEqual([
      ...[false, false, true, true, true],
    ]);
  });

  it('calls what no server may answer refused, so that it is a failure', () => {
    expect([classifyStatus(0), classifyStatus(199), classifyStatus(1_000)]).toEqual(['refused', 'refused', 'refused']);
  });

  it('says what an answer tells of the target', () => {
    const telling = (signal: string) => statusClasses.filter((name) => statusFacts[name].signal === signal);
    expect(telling('accepted')).toEqual([
      ...['success', 'unexpected', 'barred', 'forbidden', 'gone', 'busy', 'refused', 'unsupported'],
    ]);
    expect(telling('refused')).toEqual(['throttled']);
    expect(telling('trouble')).toEqual(['timeout', 'trouble']);
    expect(telling('nothing')).toEqual(['unauthorized']);
  });

  it('obeys a Retry-After only where the answer means "not now"', () => {
    const obeyed = statusClasses.filter((name) => statusFacts[name].mayAskToWait);
    expect(obeyed).toEqual(['throttled', 'unsupported', 'trouble']);
  });

  it('is the table of verdicts, row by row', () => {
    expect(verdictTable.map(({ name, answers }) => [name, answers])).toEqual(
      statusClasses.map((name) => [name, statusFacts[name].answers]),
    );
  });

  it('lets --on-status say what each row allows, and nothing else', () => {
    for (const status of every.filter((status) => status < 600)) {
      const allowed = statusActions.filter((word) => {
        try {
          return parseOnStatus(formatOnStatus([{ status, word }])).length === 1;
        } catch {
          return false;
        }
      });
      expect([status, allowed]).toEqual([
        status,
        statusActions.filter((word) => findStatusFacts(status).actions.includes(word)),
      ]);
    }
  });

  it('gives no row a meaning that --on-status must not give it', () => {
    const words = new Map<Meaning, StatusAction>([
      ...(['failed', 'retry', 'wait', 'halt'] as const).map((word) => [word, word] as const),
      ['gone', 'absent'],
    ]);
    expect(words.size).toBe(statusActions.length);
    const wrong = statusClasses.filter((name) => {
      const { meaning, actions } = statusFacts[name];
      return words.has(meaning) && !actions.includes(words.get(meaning)!);
    });
    expect(wrong).toEqual([]);
  });

  it('says why of each row that does not allow everything', () => {
    const silent = statusClasses.filter((name) => statusFacts[name].why === '');
    expect(silent.filter((name) => statusFacts[name].actions.length < statusActions.length)).toEqual([]);
  });

  it('says which statuses refuse an id, so that many of them in a row hold a run', () => {
    const refusals = every.filter(isRefusal);
    expect(refusals).toEqual(expect.arrayContaining([400, 403, 404, 405, 409, 410, 411, 418, 425, 440, 498, 501, 505]));
    expect([200, 204, 302, 401, 402, 407, 408, 429, 451, 500, 503].filter(isRefusal)).toEqual([]);
  });

  it('reads ranges, and lists statuses for people', () => {
    expect(parseStatusRanges('404, 500-599')).toEqual([
      [404, 404],
      [500, 599],
    ]);
    expect(statusesText('busy')).toBe('409, 421, 423 or 425');
    expect(statusesText('forbidden')).toBe('403');
  });
});

describe.each(throttled)('a %i', (status) => {
  test('waits without an attempt, and is counted as throttled', () => {
    expect(verdictOf(answered(status), true)).toEqual({ kind: 'wait', ambiguous: false });
    expect(isThrottling(status)).toBe(true);
    expect(waitStatuses(verdictTable).has(status)).toBe(true);
    const meter = new RunMeter(() => 0);
    meter.recordAnswer(answered(status), 1, 0, status === 204);
    expect(meter.take().changes.get('refused')).toBe(1);
  });
});

test.each([
  ['deleted', 'deleted'],
  ['gone', 'absent, or gone_unconfirmed after a request that may have been executed'],
  ['failed', 'failed'],
  ['unknown', 'unknown'],
  ['retry', 'retried; failed at the end'],
  ['wait', 'waits as the server asks; not an attempt'],
  ['credentials', 'asks for another token once and waits for it, or halts the run; not an attempt'],
  ['halt', 'halts the run at the first such answer'],
] as const)('people read of %s what happens to the id: %s', (meaning, text) => {
  expect(describeMeaning(meaning, false)).toBe(text);
  const ambiguous = meaning === 'retry' ? 'retried; may have been executed' : text;
  expect(describeMeaning(meaning, true)).toBe(ambiguous);
});
