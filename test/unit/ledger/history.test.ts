import { describe, expect, it } from 'vitest';
import { bucketsOfOne, latencyBuckets, sampleSums } from '../../../src/ledger/history.lua.ts';
import { type HistoryPoint, pointFacts, pointsOf, type Sample } from '../../../src/ledger/history.ts';
import { bucketOf } from '../../../src/ledger/measures.ts';

type Sums = Partial<Omit<Sample, 'latencies'>>;

const empty = Object.fromEntries(sampleSums.map((name) => [name, 0]));

/** The sums of a run, and a thousand answers that took so long. */
function sample(sums: Sums, ms: number | null = null, times = 1): Sample {
  const latencies = new Array<number>(latencyBuckets).fill(0);
  if (ms !== null) latencies[Math.ceil(bucketOf(ms) / bucketsOfOne)] = 1_000 * times;
  return { ...empty, ...sums, latencies } as Sample;
}

const start = 1_800_000_000_000;
const running = { state: 'running', startedAt: start, changedAt: start, endedAt: 0 } as const;

/** A sample for each second: 100 requests, 90 deleted, 5 failed, 10 throttled. */
const seconds = Array.from({ length: 60 }, (_, i) => {
  const n = i + 1;
  const sums = { at: start + 1_000 * n, activeMs: 1_000 * n, requests: 100 * n, refused: 10 * n };
  return sample({ ...sums, deleted: 90 * n, failed: 5 * n, busyMs: 4_000 * n }, 20, n);
});

const sum = (points: HistoryPoint[], of: (point: HistoryPoint) => number) =>
  points.reduce((all, point) => all + of(point), 0);

describe('the points of a run', () => {
  it('say what happened from one sample to the next', () => {
    const [first, second] = pointsOf(seconds, running);
    expect(first).toMatchObject({ from: start, to: start + 1_000, requests: 100 });
    expect(second).toMatchObject({
      from: start + 1_000,
      to: start + 2_000,
      requests: 100,
      refused: 10,
      activeMs: 1_000,
    });
    expect(second).toMatchObject({ achieved: 90, inFlight: 4, allowed: null, counts: { deleted: 90, failed: 5 } });
    expect(second!.latencyMs!.p50).toBeGreaterThan(20 / Math.SQRT2);
    expect(second!.latencyMs!.p95).toBeLessThan(20 * Math.SQRT2);
  });

  it('lose nothing when every second sample goes, however often', () => {
    let left = seconds;
    for (const points of [30, 15]) {
      left = left.filter((_, i) => i % 2 === 1);
      const merged = pointsOf([...left, seconds.at(-1)!], running);
      expect(merged).toHaveLength(points);
      expect(sum(merged, (point) => point.requests)).toBe(6_000);
      expect(sum(merged, (point) => point.counts.deleted!)).toBe(5_400);
      expect(merged[1]).toMatchObject({ achieved: 90, inFlight: 4 });
    }
  });

  it('end where the run ended, and leave out what came to nothing', () => {
    const late = sample({ ...seconds.at(-1)!, at: start + 3_600_000 }, 20, 60);
    const ended = { ...running, state: 'completed', endedAt: start + 60_500 } as const;
    expect(pointsOf([...seconds, late], ended)).toHaveLength(60);
    const more = sample({ ...late, deleted: 5_410 }, 20, 60);
    expect(pointsOf([...seconds, more], ended).at(-1)).toMatchObject({ to: start + 60_500, counts: { deleted: 10 } });
  });

  it('tell how many answers settled no id, though outcomes are joined later than their answers come', () => {
    const sums = [
      { requests: 100, deleted: 60 }, // 40 are on their way to the ledger
      { requests: 200, deleted: 195, refused: 5 },
      { requests: 320, deleted: 210, refused: 5, failed: 5 },
      { requests: 420, deleted: 300, refused: 5, failed: 15, not_attempted: 5_000 },
    ];
    const points = pointsOf(
      sums.map((one, i) => sample({ at: start + 1_000 * (i + 1), activeMs: 1_000 * (i + 1), ...one })),
      running,
    );
    expect(points.map(({ retried }) => retried)).toEqual([0, 0, 100, 0]);
    expect(pointFacts(points[2]!)).toMatchObject({ retried: 100 });
  });

  it('know no rate of a time in which no process worked', () => {
    const [point] = pointsOf([sample({ at: start + 5_000, failed: 1 })], running);
    expect(point).toMatchObject({ achieved: null, allowed: null, inFlight: null, latencyMs: null });
    expect(pointFacts(point!)).toMatchObject({ rate_achieved: null, latency_ms: null, failed: 1 });
  });

  it('know no rate where outcomes are there already and the measures of their requests are not', () => {
    const [first] = seconds;
    const ahead = sample({ ...first!, at: first!.at + 500, activeMs: 1_500, deleted: 120 }, 20);
    expect(pointsOf([first!, ahead], running)[1]).toMatchObject({ achieved: null, counts: { deleted: 30 } });
    const idle = sample({ ...first!, at: first!.at + 500, activeMs: 1_500 }, 20);
    expect(pointsOf([first!, idle], running)[1]).toMatchObject({ achieved: 0 });
  });

  it('of a run that never started are none', () => {
    expect(pointsOf([sample({ at: start })], { ...running, state: 'planned', startedAt: 0 })).toEqual([]);
  });
});
