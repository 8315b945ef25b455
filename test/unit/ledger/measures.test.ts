import { expect, it } from 'vitest';
import { RunMeter } from '../../../src/delete/meters.ts';
import { bucketOf, measuresOf } from '../../../src/ledger/measures.ts';

const answer = (status: number) => ({ kind: 'status', status, headers: {}, body: '', authorization: '' }) as const;

it('latencies of a run are told to within a tenth', () => {
  const meter = new RunMeter();
  for (let ms = 1; ms <= 1_000; ms++) meter.recordAnswer(answer(204), bucketOf(ms));
  const { latencyMs, requests } = measuresOf(Object.fromEntries([...meter.take()].map(([k, v]) => [k, String(v)])));
  expect(requests).toBe(1_000);
  for (const [found, exact] of [
    [latencyMs!.p50, 500],
    [latencyMs!.p95, 950],
    [latencyMs!.p99, 990],
  ] as const) {
    expect(found / exact).toBeGreaterThanOrEqual(1);
    expect(found / exact).toBeLessThan(1.1);
  }
});

it('latencies beyond all measure have a bucket, too', () => {
  expect([bucketOf(0), bucketOf(-1), bucketOf(0.05)]).toEqual([0, 0, 0]);
  expect(bucketOf(600_000)).toBeLessThan(200);
});

it('what was taken from a meter is not told again', () => {
  const meter = new RunMeter();
  meter.recordAnswer(answer(429), bucketOf(5));
  meter.recordAnswer({ kind: 'maybe-sent', code: 'timeout', why: '' }, bucketOf(10_000));
  meter.add('heldMs', 100);
  expect(Object.fromEntries(meter.take())).toMatchObject({ requests: 2, refused: 1, heldMs: 100 });
  expect([...meter.take()]).toEqual([]);
});

it('a run without measures has no latencies', () => {
  expect(measuresOf({})).toMatchObject({ requests: 0, latencyMs: null });
});
