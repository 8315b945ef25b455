import { describe, test } from 'vitest';
import { measureOutage, type Outage } from '../../support/outage.ts';

const ids = 20_000;
const outages: readonly Pick<Outage, 'kind' | 'workers' | 'seconds'>[] = [
  { kind: 'status-503', workers: 2, seconds: 300 },
  { kind: 'reset', workers: 2, seconds: 60 },
  { kind: 'refused', workers: 2, seconds: 30 },
];

describe.concurrent('an outage in the middle of a run', () => {
  test.for(outages)('costs next to nothing and ends by itself: %o', async (how, { expect, onTestFinished }) => {
    const seen = await measureOutage({ ...how, ids, atEnd: onTestFinished });
    const { wasted, probesPerSecond, resumedAfterMs, run, words } = seen;
    console.log(words);
    expect(wasted ?? 0).toBeLessThanOrEqual(200);
    expect(probesPerSecond ?? 0).toBeLessThanOrEqual(2);
    expect(resumedAfterMs).toBeLessThan(5_000);
    const { deleted, gone_unconfirmed, failed, unknown } = run.counts;
    expect([failed, unknown, deleted + gone_unconfirmed]).toEqual([0, 0, ids]);
    expect(run.attempts - ids).toBeLessThanOrEqual(200);
  });
});
