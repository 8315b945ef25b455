import { describe, expect, it } from 'vitest';
import { binSums, bucketsOfOne, latencyBuckets } from '../../../src/history/history.lua.ts';
import {
  closedPoints,
  type HistoryPoint,
  type RecordedHistory,
  ratePerSecond,
  toPoints,
} from '../../../src/history/history-points.ts';
import { latencyBucket } from '../../../src/ledger/measures.ts';
import { sentOutcomes } from '../../../src/model/outcome.ts';

type Recorded = RecordedHistory['bins'][number];

const second = 1_800_000_000;
const start = 1_000 * second;

/** A bin with these sums, and a thousand answers that took so long. */
function bin(nth: number, sums: Partial<Recorded> = {}, ms: number | null = null): Recorded {
  const empty = Object.fromEntries(binSums.map((name) => [name, 0])) as Omit<Recorded, 'start' | 'latencies'>;
  const latencies = new Array<number>(latencyBuckets).fill(0);
  if (ms !== null) latencies[Math.ceil(latencyBucket(ms) / bucketsOfOne)] = 1_000;
  return { ...empty, workMs: 1_000, start: second + nth, latencies, ...sums };
}

/** What Redis has if the counters of the run are what the bins have, and so much `more`. */
function recorded(
  bins: Recorded[],
  { more = {}, nowMs = start + 3_600_000, seconds = 1 }: { more?: object; nowMs?: number; seconds?: number } = {},
): RecordedHistory {
  const names = [...sentOutcomes, 'takeovers'] as const;
  const totals = Object.fromEntries(names.map((name) => [name, sum(bins, (one) => one[name])]));
  for (const [name, n] of Object.entries(more)) totals[name] = (totals[name] ?? 0) + n;
  return { now: nowMs, seconds, totals: totals as RecordedHistory['totals'], bins };
}

const ended = { state: 'completed', changedAt: start, endedAt: start + 10_300 } as const;
const running = { state: 'running', changedAt: start, endedAt: 0 } as const;

function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}

const counted = (points: HistoryPoint[], outcome: string) => sum(points, ({ counts }) => counts[outcome]!);

describe('the points of a run', () => {
  it('say what happened in each bin, as rates over the whole of it', () => {
    const sums = {
      requests: 100,
      refused: 10,
      deleted: 85,
      failed: 5,
      busyMs: 4_000,
      allowed: 450_000,
      limitedMs: 1_000,
    };
    const [first, next] = toPoints(recorded([bin(0, sums, 20), bin(1, sums, 20)]), ended);
    expect(first).toMatchObject({ from: start, to: start + 1_000, isOpen: false, requests: 100, refused: 10 });
    expect(next).toMatchObject({ from: start + 1_000, to: start + 2_000, achieved: 90, inFlight: 4, allowed: 450 });
    expect(next!.counts).toMatchObject({ deleted: 85, failed: 5 });
    expect(next!.latencyMs!.p50).toBeGreaterThan(20 / Math.SQRT2);
    expect(next!.latencyMs!.p95).toBeLessThan(20 * Math.SQRT2);
  });

  /** @invariant true-bins */
  it('have no rate that never was: work done in a millisecond is over a second', () => {
    const [point] = toPoints(recorded([bin(0, { workMs: 1, requests: 9, failed: 9 })]), ended);
    expect(point).toMatchObject({ from: start, to: start + 1_000, achieved: 9 });
    expect(ratePerSecond(point!.counts.failed!, point!)).toBe(9);
  });

  it('are over the width of a bin, whatever it is', () => {
    const [point] = toPoints(recorded([bin(0, { workMs: 8_000, requests: 3_600 })], { seconds: 8 }), ended);
    expect(point).toMatchObject({ to: start + 8_000, achieved: 450, activeMs: 8_000 });
  });

  it('are open where a running run has not recorded all, and have no rate there', () => {
    const bins = [0, 1, 2, 3].map((n) => bin(n, { requests: 60, deleted: 60, busyMs: 500 }));
    const points = toPoints(recorded(bins, { nowMs: start + 3_250, more: { deleted: 15 } }), running);
    expect(points.map(({ isOpen }) => isOpen)).toEqual([false, true, true, true]);
    expect(points.map(({ achieved, inFlight }) => [achieved, inFlight])).toEqual([
      [60, 0.5],
      [null, null],
      [null, null],
      [null, null],
    ]);
    expect(closedPoints(points)).toEqual([points[0]]);
    expect(counted(points, 'deleted')).toBe(255);
  });

  it('of a run that has ended are all closed, and add up to its counters', () => {
    const bins = Array.from({ length: 10 }, (_, n) => bin(n, { requests: 60, deleted: n === 9 ? 0 : 60 }));
    const points = toPoints(recorded(bins, { more: { deleted: 54, failed: 3 } }), ended);
    expect(points.some(({ isOpen }) => isOpen)).toBe(false);
    expect([counted(points, 'deleted'), counted(points, 'failed')]).toEqual([594, 3]);
  });

  it('spread what no process recorded as the rest is: nobody knows when it was', () => {
    const bins = [bin(0, { deleted: 100 }), bin(1, { deleted: 300 }), bin(2)];
    const points = toPoints(recorded(bins, { more: { deleted: 40 } }), ended);
    expect(points.map(({ counts }) => counts.deleted)).toEqual([110, 330, 0]);
    const fewer = toPoints(recorded(bins, { more: { deleted: -4 } }), ended);
    expect(fewer.map(({ counts }) => counts.deleted)).toEqual([99, 297, 0]);
  });

  it('leave out what was not attempted: it happened at no time', () => {
    const points = toPoints(recorded([bin(0, { requests: 5, deleted: 5 })]), { ...ended, state: 'cancelled' });
    expect(Object.keys(points[0]!.counts)).toEqual(['deleted', 'absent', 'gone_unconfirmed', 'failed', 'unknown']);
  });

  it('tell how many answers settled no id, though outcomes are recorded later than their answers', () => {
    const sums = [
      { requests: 100, deleted: 60 }, // 40 are on their way to the ledger
      { requests: 100, deleted: 135, refused: 5 },
      { requests: 120, deleted: 15, failed: 5 },
      { requests: 100, deleted: 90, failed: 10 },
    ];
    const points = toPoints(recorded(sums.map((one, n) => bin(n, one))), ended);
    expect(points.map(({ retried }) => retried)).toEqual([0, 0, 100, 0]);
  });

  it('say how long nothing might be sent, of the time in which processes worked', () => {
    const points = toPoints(
      recorded([bin(0, { workMs: 2_000, heldMs: 500 }), bin(1, { workMs: 300, heldMs: 300 })]),
      ended,
    );
    expect(points.map(({ activeMs, waitedMs }) => [activeMs, waitedMs])).toEqual([
      [1_000, 250],
      [300, 300],
    ]);
  });

  it('have a rate of nothing while a process waits, and none where no process worked', () => {
    const [waits, nobody] = toPoints(recorded([bin(0), bin(1, { workMs: 0, failed: 1 })]), ended);
    expect(waits).toMatchObject({ achieved: 0, inFlight: null, allowed: null, latencyMs: null });
    expect(nobody).toMatchObject({ achieved: null, counts: { failed: 1 } });
  });

  it('of a run that never started are none', () => {
    expect(toPoints(recorded([]), { ...running, state: 'planned' })).toEqual([]);
  });
});
