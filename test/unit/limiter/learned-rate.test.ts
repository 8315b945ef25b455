import { describe, expect, it } from 'vitest';
import {
  acceptedPerSecond,
  meanInFlight,
  refusedShare,
  settledAfter,
  usedShare,
} from '../../support/limit-measures.ts';
import { type Scenario, simulate } from '../../support/limit-simulator.ts';
import {
  cpuBoundClient,
  fixedWindow,
  queueing,
  type RetryAfter,
  tokenBucket,
  unlimited,
} from '../../support/limited-servers.ts';

type Bucket = { limit: number; burst: number; latencyMs: number; processes: number };

const [slow, fast] = [300, 3000].map((limit) =>
  [0.05, 0.1, 1].flatMap((burst) => [
    { limit, burst, latencyMs: 10, processes: 1 },
    { limit, burst, latencyMs: 100, processes: 4 },
  ]),
) as [Bucket[], Bucket[]];
const title = '$limit/s, burst $burst s, $latencyMs ms, $processes process(es)';

const run = ({ limit, burst, ...rest }: Bucket, retryAfter: RetryAfter, over: Partial<Scenario>) =>
  simulate({ server: () => tokenBucket(limit, burst, retryAfter), seconds: 120, ...rest, ...over });

describe('a hidden token bucket that answers 429 and no more', () => {
  it.each([...slow, ...fast])(`is used to 98 %, with 0.5 % refused: ${title}`, (bucket) => {
    const result = run(bucket, 'none', { seconds: 90 });
    expect(usedShare(result, 30, 90)).toBeGreaterThan(0.98);
    expect(refusedShare(result, 30, 90)).toBeLessThan(0.005);
    expect(settledAfter(result, 0)).toBeLessThan(20);
  });
});

describe.each(['delta', 'date'] as const)(
  'a hidden token bucket that answers 429 with Retry-After (%s)',
  (retryAfter) => {
    const used: number[] = [];

    it.each([...slow, ...fast])(`is used to 97 %, with 0.5 % refused: ${title}`, (bucket) => {
      const result = run(bucket, retryAfter, {});
      used.push(usedShare(result, 30, 120));
      expect(used.at(-1)).toBeGreaterThan(0.97);
      expect(refusedShare(result, 30, 120)).toBeLessThan(0.005);
    });

    it('is used to 98 % in the mean of these', () => {
      expect(used.reduce((sum, share) => sum + share, 0) / used.length).toBeGreaterThan(0.98);
    });
  },
);

describe('a limit that changes', () => {
  const buckets = [...slow, ...fast]
    .filter(({ burst }) => burst !== 0.1)
    .map((bucket) => ({ ...bucket, latencyMs: 30 }));

  it.each(buckets)(`is followed down within 20 s: ${title}`, (bucket) => {
    for (const retryAfter of ['none', 'delta', 'date'] as const) {
      const result = run(bucket, retryAfter, { seconds: 95, changes: [[60, bucket.limit / 2]] });
      expect(settledAfter(result, 60)).toBeLessThan(20);
    }
  });

  it.each(buckets)(`is followed up within 20 s: ${title}`, (bucket) => {
    const result = run(bucket, 'none', { seconds: 85, changes: [[60, bucket.limit * 2]] });
    expect(settledAfter(result, 60)).toBeLessThan(20);
  });

  it.each(['delta', 'date'] as const)('is followed within 20 s when it comes back: Retry-After (%s)', (retryAfter) => {
    for (const limit of [300, 3_000])
      for (const processes of [1, 4])
        for (const seed of [1, 2, 3]) {
          const bucket = { limit, burst: 0.1, latencyMs: 10, processes };
          const changes: Scenario['changes'] = [
            [40, limit / 2],
            [70, limit],
          ];
          const result = run(bucket, retryAfter, { seconds: 100, seed, changes });
          expect(settledAfter(result, 40, 70)).toBeLessThan(20.1);
          expect(settledAfter(result, 70)).toBeLessThan(20.1);
        }
  });

  it('is followed up within two minutes where each look costs everybody a second', () => {
    for (const processes of [1, 4]) {
      const bucket = { limit: 300, burst: 0.05, latencyMs: 30, processes };
      const result = run(bucket, 'delta', { seconds: 190, changes: [[60, 600]] });
      expect(settledAfter(result, 60)).toBeLessThan(120);
    }
  });
});

describe('other targets', () => {
  const bucket = { limit: 300, burst: 0.05, latencyMs: 30, processes: 4 };

  it.each([1, 4])('a fixed window of a second is used to 97 percent: %d process(es)', (processes) => {
    const result = simulate({ server: () => fixedWindow(1000), processes, seconds: 120 });
    expect(usedShare(result, 30, 120)).toBeGreaterThan(0.97);
    expect(refusedShare(result, 30, 120)).toBeLessThan(0.005);
  });

  it.each([8, 20])('a limit of %d/s with a burst of a second is used to 98 %%', (limit) => {
    const result = run({ ...bucket, limit, burst: 1 }, 'none', {});
    expect(usedShare(result, 30, 120)).toBeGreaterThan(0.98);
    expect(refusedShare(result, 30, 120)).toBeLessThan(0.015);
  });

  it.each([1, 4])('no limit: 40,000/s within four seconds: %d process(es)', (processes) => {
    const result = simulate({ server: unlimited, processes, seconds: 4, ceiling: null });
    expect(acceptedPerSecond(result, 3.5, 4)).toBeGreaterThan(40_000);
  });

  it('noise: two percent of answers are errors of another kind', () => {
    expect(usedShare(run(bucket, 'none', { noise: 0.02, seconds: 90 }), 30, 90)).toBeGreaterThan(0.98);
  });

  it('latency that jumps from 10 to 60 ms', () => {
    const latencyMs = (nowMs: number) => (nowMs < 50_000 ? 10 : 60);
    expect(usedShare(run({ ...bucket, limit: 1000 }, 'none', { latencyMs, seconds: 90 }), 52, 90)).toBeGreaterThan(
      0.98,
    );
  });

  it('another client that takes a third of the limit, on and off', () => {
    const otherClient = (nowMs: number) => (Math.floor(nowMs / 30_000) % 2) * 100;
    const result = run(bucket, 'none', { otherClient, seconds: 150 });
    expect(usedShare(result, 30, 150)).toBeGreaterThan(0.92);
    expect(refusedShare(result, 30, 150)).toBeLessThan(0.02);
  });

  it('work that comes every other second', () => {
    const hasWork = (nowMs: number) => nowMs % 2000 < 1000;
    const result = run(bucket, 'none', { hasWork });
    expect(usedShare(result, 30, 120)).toBeGreaterThan(0.48);
    expect(refusedShare(result, 30, 120)).toBeLessThan(0.005);
  });

  it('work that was away for a minute', () => {
    const hasWork = (nowMs: number) => nowMs < 40_000 || nowMs > 110_000;
    expect(usedShare(run(bucket, 'none', { hasWork, seconds: 150 }), 112, 150)).toBeGreaterThan(0.98);
  });

  it('looks that come once a second only', () => {
    const result = run({ ...bucket, burst: 0.1 }, 'none', { callMs: 1000 });
    expect(usedShare(result, 30, 120)).toBeGreaterThan(0.95);
    expect(refusedShare(result, 30, 120)).toBeLessThan(0.03);
  });
});

describe('a target that serves 20 requests at a time and queues the rest', () => {
  it.each([
    { serviceMs: 10, processes: 1 },
    { serviceMs: 10, processes: 4 },
    { serviceMs: 100, processes: 1 },
    { serviceMs: 100, processes: 4 },
  ])('gets 15 to 25 in flight: $serviceMs ms, $processes process(es)', ({ serviceMs, processes }) => {
    for (const seed of [1, 2, 3]) {
      const server = (random: () => number) => queueing(20, serviceMs, random);
      const result = simulate({ server, latencyMs: 1, processes, seconds: 60, seed });
      expect(meanInFlight(result, 20, 60)).toBeGreaterThan(15);
      expect(meanInFlight(result, 20, 60)).toBeLessThan(25);
      expect(acceptedPerSecond(result, 20, 60)).toBeGreaterThan(0.85 * (20_000 / serviceMs));
    }
  });

  it.each([0.15, 0.25, 0.4])('is not mistaken for a busy client, whose throughput grows by %d a doubling', (gain) => {
    const server = () => cpuBoundClient(1, gain);
    const result = simulate({ server, latencyMs: 1, processes: 4, mostInFlight: 256, seconds: 15 });
    expect(meanInFlight(result, 8, 15)).toBeGreaterThan(128);
  });
});
