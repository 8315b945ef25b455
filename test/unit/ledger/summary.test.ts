import { describe, expect, test } from 'vitest';
import { parseRun } from '../../../src/ledger/run.ts';
import { toExitCode, toSummary } from '../../../src/ledger/summary.ts';

function run(hash: Record<string, string | number>) {
  const fields = Object.entries(hash).map(([field, value]) => [field, String(value)]);
  return parseRun('20261120-1602-m4tz', Object.fromEntries(fields));
}

describe('the summary', () => {
  test('has the keys that scripts rely on, in their order', () => {
    const counts = { deleted: 1, absent: 2, gone_unconfirmed: 3, failed: 4, unknown: 5, not_attempted: 6 };
    const settled = { rejected: 7, duplicate: 8, protected: 9 };
    const ended = run({
      state: 'cancelled',
      reason: 'OPS-1',
      rows: 45,
      ...counts,
      ...settled,
      protectedRead: 30,
      attempts: 20,
      bodies: 2,
      activeMs: 1_234,
      retryOf: 'r0',
      retriedBy: 'r2 r3',
    });
    const head =
      '{"v":1,"type":"summary","run":"20261120-1602-m4tz","state":"cancelled","reason":"OPS-1","rows":45,"pending":0,';
    const sent = '"deleted":1,"absent":2,"gone_unconfirmed":3,"failed":4,"unknown":5,"not_attempted":6,';
    const rest =
      '"rejected":7,"duplicate":8,"protected":9,"protected_read":30,"attempts":20,"answers_with_body":2,"seconds":1.234,"exit":3,"starts_at":null,';
    const related = '"retry_of":"r0","retried_by":["r2","r3"],"results":null,"results_problem":null,"verified":null}';
    expect(JSON.stringify(toSummary(ended, 3, 0))).toBe(head + sent + rest + related);
  });

  test('tells a run without a protect list from one whose list matched nothing', () => {
    expect(toSummary(run({ state: 'running', protectedRead: 3 }), null, 0)).toMatchObject({
      protected: 0,
      protected_read: 3,
    });
    expect(toSummary(run({ state: 'running', protectedRead: '' }), null, 0)).toMatchObject({ protected_read: null });
  });

  test('counts what is left and the time of the current sitting while the run goes on', () => {
    const going = run({ state: 'running', rows: 10, deleted: 4, activeMs: 1_000, activeUntil: 5_000 });
    expect(toSummary(going, null, 7_500)).toMatchObject({ pending: 6, seconds: 3.5, exit: null });
    expect(toSummary(going, null, 3_600_000)).toMatchObject({ seconds: 1 }); // nobody is at work any more
  });
});

describe('the exit code', () => {
  test.each([
    ['planned', {}, null],
    ['running', {}, null],
    ['paused', {}, null],
    ['cancelling', {}, null],
    ['completed', { rows: 5, deleted: 1, absent: 1, gone_unconfirmed: 1, duplicate: 1, protected: 1 }, 0],
    ['completed', { rows: 2, deleted: 1, failed: 1 }, 3],
    ['completed', { rows: 3, ids: 2, absent: 2, duplicate: 1 }, 3],
    ['completed', { rows: 2, ids: 2, absent: 1, gone_unconfirmed: 1 }, 3],
    ['completed', { rows: 2, ids: 2, gone_unconfirmed: 2 }, 0],
    ['completed', { rows: 2, ids: 2, absent: 2, expectAbsent: 1 }, 0],
    ['completed', { rows: 2, deleted: 1, unknown: 1 }, 3],
    ['completed', { rows: 2, deleted: 1, rejected: 1 }, 3],
    ['completed', { rows: 2, deleted: 1 }, 1],
    ['cancelled', { rows: 2, deleted: 1, not_attempted: 1, tallied: 1 }, 3],
    ['cancelled', { rows: 2, deleted: 2 }, 0],
    ['cancelled', { rows: 2, deleted: 1 }, 3],
    ['cancelled', { rows: 2, deleted: 1, tallied: 1 }, 1],
    ['halted', { halt: 'credentials' }, 5],
    ['halted', { halt: 'target_configuration' }, 6],
    ['halted', { halt: 'target_unreachable' }, 6],
    ['halted', { halt: 'ledger_lost' }, 6],
  ])('of a run that is %s with %j is %s', (state, fields, exit) => {
    expect(toExitCode(run({ state, ...fields }))).toBe(exit);
  });

  test.each(['unexpected_answers', 'wrong_endpoint', 'forbidden', 'refused', 'all_absent', 'halting_status', ''])(
    'of a run that is halted by "%s" is 4',
    (halt) => expect(toExitCode(run({ state: 'halted', halt }))).toBe(4),
  );
});
