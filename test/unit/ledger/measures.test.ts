import { expect, it } from 'vitest';
import { RunMeter } from '../../../src/delete/meters.ts';
import { latencyBounds, latencyBucket, parseMeasures } from '../../../src/ledger/measures.ts';

const answer = (status: number) => ({ kind: 'status', status, headers: {}, body: '', authorization: '' }) as const;

it('latencies of a run are told to within a tenth', () => {
  const meter = new RunMeter(() => 0);
  for (let ms = 1; ms <= 1_000; ms++) meter.recordAnswer(answer(204), ms, latencyBucket(ms), true);
  const { latencyMs, requests } = parseMeasures(
    Object.fromEntries([...meter.take().changes].map(([k, v]) => [k, String(v)])),
  );
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
  expect([latencyBucket(0), latencyBucket(-1), latencyBucket(0.05)]).toEqual([0, 0, 0]);
  expect(latencyBucket(600_000)).toBeLessThan(200);
});

it('what was taken from a meter is not told again', () => {
  const meter = new RunMeter(() => 0);
  meter.recordAnswer(answer(429), 5, latencyBucket(5), false);
  meter.recordAnswer({ kind: 'maybe-sent', code: 'timeout', why: '' }, 10_000, latencyBucket(10_000), false);
  meter.add('heldMs', 100);
  expect(Object.fromEntries(meter.take().changes)).toMatchObject({ requests: 2, refused: 1, heldMs: 100 });
  expect([...meter.take().changes]).toEqual([]);
});

it('a run without measures has no latencies', () => {
  expect(parseMeasures({})).toMatchObject({ requests: 0, latencyMs: null });
});

it('latencies are told by their size, in whatever order Redis has them', () => {
  const bucket = (ms: number) => `l${latencyBucket(ms)}`;
  const { latencyMs } = parseMeasures({
    [bucket(1_000)]: '1',
    requests: '100',
    [bucket(10)]: '97',
    [bucket(100)]: '2',
  });
  expect(latencyMs!.p50).toBeCloseTo(10, -1);
  expect(latencyMs!.p95).toBeLessThan(11);
  expect(latencyMs!.p99).toBeGreaterThanOrEqual(100);
  expect(latencyMs!.p99).toBeLessThan(110);
});

it('the scale for Prometheus doubles from 0.4 ms to 13 s, and each of its bounds ends a bucket', () => {
  expect(latencyBounds.map(({ seconds }) => seconds)).toEqual([
    ...[0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512],
    ...[0.1024, 0.2048, 0.4096, 0.8192, 1.6384, 3.2768, 6.5536, 13.1072],
  ]);
  for (const { bucket, seconds } of latencyBounds)
    expect([latencyBucket(999.9 * seconds), latencyBucket(1_000.1 * seconds)]).toEqual([bucket, bucket + 1]);
});
