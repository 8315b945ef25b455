import { describe, test } from 'vitest';
import { measureOutage } from '../support/outage.ts';

describe.concurrent('an outage in the middle of a run', () => {
  test.for([
    { kind: 'status-503', workers: 2 },
    { kind: 'refused', workers: 0 },
  ] as const)('costs no id anything and ends by itself: %o', async (how, { expect, onTestFinished }) => {
    const ids = 6_000;
    const { wasted, probesPerSecond, resumedAfterMs, run, words } = await measureOutage({
      ...how,
      ids,
      seconds: 6,
      atEnd: onTestFinished,
    });
    expect(wasted ?? 0, words).toBeLessThanOrEqual(200);
    expect(probesPerSecond ?? 0, words).toBeLessThanOrEqual(2);
    expect(resumedAfterMs, words).toBeLessThan(5_000);
    const { deleted, gone_unconfirmed, failed, unknown } = run.counts;
    expect([failed, unknown, deleted + gone_unconfirmed], words).toEqual([0, 0, ids]);
    expect(run.attempts - ids, words).toBeLessThanOrEqual(200);
  });
});
