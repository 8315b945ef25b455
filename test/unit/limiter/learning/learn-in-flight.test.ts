import { describe, expect, it } from 'vitest';
import { firstInFlight, type InFlight, learnInFlight } from '../../../../src/limiter/learning/learn-in-flight.ts';
import { observation } from '../../../support/observations.ts';

const max = 256;

/** Looks every 100 ms while each process waits for a connection and answers take as long as the limit makes them. */
function watch(
  state: InFlight,
  latencyAt: (limit: number) => number,
  seconds: number,
  more = {},
  all = max,
): InFlight[] {
  const states = [state];
  for (let look = 1; look <= seconds * 10; look++) {
    const before = states.at(-1)!;
    const ms = latencyAt(before.limit);
    const count = Math.round((before.limit / ms) * 100);
    const latency = { count, sumMs: count * ms };
    states.push(learnInFlight(before, observation({ now: look * 100, latency, reports: 4, starved: 4, ...more }), all));
  }
  return states;
}

const few = { ...firstInFlight(0, max), limit: 8 };
const flat = () => 10;
const queueAbove20 = (limit: number) => 10 * Math.max(1, limit / 20);

describe('the limit of requests in flight', () => {
  it('begins with all that the fleet may have, and keeps them while no process waits for a connection', () => {
    const limits = watch(firstInFlight(0, max), queueAbove20, 5, { starved: 0 }).map(({ limit }) => limit);
    expect(new Set(limits)).toEqual(new Set([max]));
  });

  it('shrinks only where processes have time to spare: else latencies show their load', () => {
    const lowest = (more: object) =>
      Math.min(...watch(firstInFlight(0, max), queueAbove20, 5, more).map(({ limit }) => limit));
    expect(lowest({ busy: 4 })).toBe(max);
    expect(lowest({ busy: 0 })).toBeLessThan(max / 2);
  });

  it('doubles every third of a second or so while that costs no latency', () => {
    expect(Math.max(...watch(few, flat, 1.8).map(({ limit }) => limit))).toBe(max);
  });

  it('stays where it is while no process waits for a connection', () => {
    expect(watch(few, flat, 5, { starved: 0 }).at(-1)!.limit).toBe(8);
  });

  it('never exceeds what the fleet may have', () => {
    expect(firstInFlight(0, 4).limit).toBe(4);
    expect(learnInFlight({ ...firstInFlight(0, max), limit: 200 }, observation({ now: 100 }), 64).limit).toBe(64);
  });

  it('doubles at once when processes join where all were in use, also while fewer are being tried', () => {
    const tried = watch(firstInFlight(0, 16), flat, 3, {}, 16);
    expect(Math.min(...tried.map(({ limit }) => limit))).toBeLessThan(16);
    for (const state of tried) {
      const since = { ...state, lookedAtMs: 0, judgeFromMs: 0, restUntilMs: state.restUntilMs - state.lookedAtMs };
      expect(watch(since, flat, 1.5, {}, 64).at(-1)!.limit).toBe(64);
    }
  });

  it('stays what was found when processes join or leave', () => {
    const found = watch(firstInFlight(0, max), queueAbove20, 30).at(-1)!;
    expect(found.limit).toBeLessThan(30);
    for (const now of [128, 512])
      expect(learnInFlight({ ...found, trend: 'hold' }, observation({ now: 30_001 }), now).limit).toBe(found.limit);
  });

  it('settles where a target begins to queue', () => {
    for (const begin of [few, firstInFlight(0, max)]) {
      const late = watch(begin, queueAbove20, 30).slice(100);
      const mean = late.reduce((sum, { limit }) => sum + limit, 0) / late.length;
      expect(mean).toBeGreaterThan(15);
      expect(mean).toBeLessThan(25);
    }
  });

  it.each([1, 2, 3])('goes on learning where no more than %d bring anything', (all) => {
    const states = watch(firstInFlight(0, all), (limit) => 10 * limit, 60, {}, all).slice(300);
    expect(new Set(states.map(({ limit }) => limit))).toContain(Math.min(2, all));
    expect(states.map(({ trend }) => trend)).toContain('hold');
  });

  it('with all that there are, fewer are tried after 2.5 s, then each time twice as late, at most after 30 s', () => {
    const limits = watch(firstInFlight(0, max), flat, 130).map(({ limit }) => limit);
    const tries = limits.flatMap((limit, look) => (limit < max && limits[look - 1] === max ? [look / 10] : []));
    const gaps = tries.slice(1).map((at, i) => Math.round(at - tries[i]!));
    expect(gaps).toEqual([3, 5, 10, 20, 30, 30, 30]);
  });

  it.each([0.15, 0.25, 0.4])('goes on growing when each doubling brings %d more throughput', (gain) => {
    const latencyAt = (limit: number) => (2 / (1 + gain)) ** Math.log2(limit);
    const late = watch(few, latencyAt, 40).slice(200);
    expect(Math.max(...late.map(({ limit }) => limit))).toBe(max);
    expect(Math.min(...late.map(({ limit }) => limit))).toBeGreaterThan(max / 2); // now and then fewer are tried
  });

  it('follows processes that have no time left themselves, and looks what was needed once they have', () => {
    const busy = watch(few, queueAbove20, 3, { busy: 3 }).at(-1)!;
    expect(busy.limit).toBe(max);
    const later = watch({ ...busy, lookedAtMs: 0, judgeFromMs: 0, restUntilMs: 0 }, queueAbove20, 30).slice(200);
    expect(Math.min(...later.map(({ limit }) => limit))).toBeGreaterThan(10);
    expect(later.reduce((sum, { limit }) => sum + limit, 0) / later.length).toBeLessThan(25);
  });

  it('goes down by three tenths when more answers are lost than chance explains, again once the new limit was tried', () => {
    const lose = (state: InFlight, now: number, lost: number) =>
      learnInFlight(state, observation({ now, lost, latency: { count: 90, sumMs: 900 } }), max);
    const state = { ...firstInFlight(0, max), limit: 100 };
    expect(lose(state, 2000, 9).limit).toBe(100);
    const once = lose(state, 2000, 10);
    expect(once.limit).toBeCloseTo(70);
    expect(lose(once, 2100, 10).limit).toBeCloseTo(70);
    expect(lose(lose(once, 2200, 0), 2300, 12).limit).toBeCloseTo(49);
  });

  it('stays high while answers are lost at any limit, few or many: cuts that do not help are taken back', () => {
    for (const [all, ms, lostEach] of [
      [64, 20, 30],
      [16, 50, 40],
      [256, 50, 25],
      [64, 50, 16],
      [64, 50, 10],
      [256, 50, 5],
    ] as const) {
      let state = firstInFlight(0, all);
      let answered = 0;
      const limits: number[] = [];
      for (let look = 1; look <= 1_200; look++) {
        const count = Math.round((state.limit / ms) * 100);
        const lost = Math.floor((answered + count) / lostEach) - Math.floor(answered / lostEach);
        answered += count;
        const seen = { now: look * 100, lost, latency: { count, sumMs: count * ms }, reports: 4, starved: 4 };
        state = learnInFlight(state, observation(seen), all);
        limits.push(state.limit);
      }
      const mean = limits.reduce((sum, limit) => sum + limit, 0) / limits.length;
      expect(mean, `one of ${lostEach} lost`).toBeGreaterThan(0.8 * all);
    }
  });
});
