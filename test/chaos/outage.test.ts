import { describe, test } from 'vitest';
import { measureOutage, type Outage } from '../support/outage.ts';
import { isFull, sized } from '../support/size.ts';

const ids = sized(6_000, 20_000);
const outages: readonly Pick<Outage, 'kind' | 'workers' | 'seconds'>[] = sized(
  [
    { kind: 'status-503', workers: 2, seconds: 6 },
    { kind: 'refused', workers: 0, seconds: 6 },
  ],
  [
    { kind: 'status-503', workers: 2, seconds: 300 },
    { kind: 'reset', workers: 2, seconds: 60 },
    { kind: 'refused', workers: 2, seconds: 30 },
  ],
);

describe.concurrent('an outage in the middle of a run', () => {
  /** @invariant free-outage: An outage costs no id an attempt. */
  test.for(outages)('costs no id anything and ends by itself: %o', async (how, { expect, onTestFinished }) => {
    const { wasted, probesPerSecond, resumedAfterMs, run, words } = await measureOutage({
      ...how,
      ids,
      atEnd: onTestFinished,
    });
    expect(wasted ?? 0, words).toBeLessThanOrEqual(200);
    expect(probesPerSecond ?? 0, words).toBeLessThanOrEqual(2);
    console.log(words);
    if (isFull) expect(resumedAfterMs).toBeLessThan(5_000);
    const { deleted, gone_unconfirmed, failed, unknown } = run.counts;
    expect([failed, unknown, deleted + gone_unconfirmed], words).toEqual([0, 0, ids]);
    expect(run.attempts - ids, words).toBeLessThanOrEqual(200);
  });
});
