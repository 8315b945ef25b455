import { describe, expect, it } from 'vitest';
import { control, type TargetControl } from '../../../../src/limiter/learning/control.ts';
import { firstRate } from '../../../../src/limiter/learning/learned-rate.ts';
import { meanOnRamp, startRamp } from '../../../../src/limiter/learning/ramp.ts';
import type { Sums } from '../../../../src/limiter/learning/sums.ts';
import { sums } from '../../../support/sums.ts';

const startMs = 1_000_000;

/** A target whose limit was found to be about 100/s; it has just accepted something. */
function known(): TargetControl {
  const first = control(null, sums({ now: startMs }));
  const cost = { refused: 1, blockedMs: 0 };
  return { ...first, rate: startRamp(firstRate(startMs, null), { low: 100, high: 101 }, cost, startMs) };
}

type Look = Partial<Sums>;

/** What is next after these looks, the first `everyMs` after the state was last looked at, and so on. */
function next(state: TargetControl, looks: Look[], everyMs = 100): TargetControl {
  let [after, now] = [state, state.rate.lookedAtMs];
  for (const look of looks) {
    now += everyMs;
    after = control(after, sums({ now, ...look }));
  }
  return after;
}

const times = (count: number, look: Look) => Array.from({ length: count }, () => look);
const sinceStart = (ms: number) => ({ now: startMs + ms });

/** All used up at once: the window's requests in the first second of it, nothing more from then on. */
const spend = (state: TargetControl) => next(state, [...times(10, { accepted: 10 }), ...times(2, { refused: 10 })]);

describe('a target that refuses everything is closed', () => {
  it('after ten refused answers over 150 ms, since when, and with its words', () => {
    const closed = next(known(), times(2, { refused: 5 }));
    expect(closed.closed).toMatchObject({
      kind: 'refused',
      sinceMs: startMs,
      why: 'the API throttles every request',
    });
    expect(closed.rate.low).toBe(100);
    expect(closed.epoch).toBeGreaterThan(known().epoch);
  });

  it('not after nine, and not sooner than 150 ms', () => {
    expect(next(known(), times(3, { refused: 3 })).closed).toBeNull();
    expect(next(known(), times(1, { refused: 40 })).closed).toBeNull();
    expect(next(known(), times(7, { refused: 10 }), 20).closed).toBeNull();
    expect(next(known(), times(8, { refused: 10 }), 20).closed?.kind).toBe('refused');
  });

  it('not while one of many is accepted', () => {
    expect(next(known(), times(100, { refused: 40, accepted: 1 })).closed).toBeNull();
  });

  it('not by refusals of permits of an older epoch, nor while the server asks for a wait', () => {
    expect(next(known(), times(20, { refused: 10, currentRefused: 0 })).closed).toBeNull();
    const waiting = Array.from({ length: 20 }, (_, n) => ({ refused: 10, holdUntil: startMs + 100 * n + 1_100 }));
    expect(next(known(), waiting).closed).toBeNull();
  });

  it('at the third wait that the server asks for, where nothing was accepted since before the first: waits of a second say nothing of a window of a minute', () => {
    /** Each second one refusal and a wait of half a second; `then`: what is seen after it. */
    const waits = (count: number, then: Look = {}) =>
      Array.from({ length: 10 * count }, (_, n) => {
        const holdUntil = startMs + 1_000 * Math.floor(n / 10) + 600;
        return { holdUntil, ...(n % 10 === 0 ? { refused: 1 } : {}), ...(n % 10 === 7 ? then : {}) };
      });
    expect(next(known(), waits(2)).closed).toBeNull();
    expect(next(known(), waits(3)).closed).toMatchObject({ kind: 'refused', sinceMs: startMs });
    expect(next(known(), waits(9, { accepted: 1 })).closed).toBeNull();
  });

  it('counted from the first refusal: time in which nothing was sent is not time without an answer', () => {
    const idle = next(known(), times(600, {}), 1_000);
    const closed = next(idle, times(3, { refused: 5 }));
    expect(closed.closed?.sinceMs).toBe(startMs + 600_000);
    expect(closed.closed?.probeGapMs).toBeLessThan(1_000);
  });
});

describe('the circuit', () => {
  it('is opened by one probe that is accepted, not by refused ones and not by late answers', () => {
    const closed = spend(known());
    expect(next(closed, times(5, { refused: 1 })).closed?.kind).toBe('refused');
    expect(next(closed, [{ accepted: 5, currentAccepted: 0 }]).closed?.kind).toBe('refused');
    const open = next(closed, [{ accepted: 1 }]);
    expect(open.closed).toBeNull();
    expect(open.epoch).toBe(closed.epoch + 1);
  });

  it('probes after 100 ms at first, then after an ever longer time, but every 75 s at least for an hour, then every 15 min', () => {
    const gapAfter = (ms: number) => next(spend(known()), [sinceStart(1_000 + ms)]).closed?.probeGapMs;
    expect([200, 1_000, 10_000, 100_000, 3_600_000].map(gapAfter)).toEqual([100, 150, 1_500, 15_000, 75_000]);
    expect([3_950_000, 36_000_000].map(gapAfter)).toEqual([592_500, 900_000]);
  });

  it('probes in an outage every half second, more seldom after each probe that failed, but every three seconds at least', () => {
    const out = next(known(), [{ alarm: { kind: 'trouble', why: 'x' } }]);
    expect(out.closed?.probeGapMs).toBe(500);
    expect(next(out, times(9, {})).closed?.probeGapMs).toBe(500);
    expect(next(out, [{ trouble: 1 }]).closed?.probeGapMs).toBe(750);
    expect(next(out, times(20, { trouble: 1 })).closed?.probeGapMs).toBe(3_000);
  });
});

describe('a spent window', () => {
  const secondMs = 60_000;

  /** Spent in its first second, and opened again by a probe at the end of its minute. */
  const cycle = (state: TargetControl) => {
    const openedAtMs = state.cycle.openedAtMs!;
    return next(spend(state), [{ now: openedAtMs + secondMs, accepted: 1 }]);
  };

  it('is met at first with all that was known before, because the target may only have been away', () => {
    const open = cycle(known());
    expect(open.rate.phase).toBe('ramp');
    expect(open.rate.low).toBeCloseTo(100 / 60, 1);
    expect(open.rate.high).toBeGreaterThan(80);
    expect(open.cycle).toMatchObject({ windowMs: secondMs, openedAtMs: startMs + secondMs, accepted: 1 });
  });

  it('at the start of a run is met with a quarter of a limit that was known well, though nothing was accepted', () => {
    const state = known();
    const well = { ...state.rate, known: 80 };
    const open = next(spend({ ...state, rate: well, cycle: { ...state.cycle, accepted: 0 } }), [
      { now: startMs + 100_000, accepted: 1 },
    ]);
    expect(open.rate.low).toBeCloseTo(20);
    expect(open.rate.rampMs).toBeLessThan(10_000);
  });

  it('that is spent again goes on at what was accepted by the length of its cycle', () => {
    const open = cycle(cycle(known()));
    expect(open.rate.low).toBeGreaterThan(100 / 60);
    expect(open.rate.low).toBeLessThan(1.2 * (101 / 60)); // half of the last probe's gap is not counted
    expect(open.rate.high).toBe(open.rate.low);
    expect(open.rate.rate).toBeCloseTo(0.98 * open.rate.low);
  });

  it('makes the next ramp so long that the window is not spent early again and again', () => {
    expect(cycle(cycle(known())).rate.rampMs).toBeGreaterThan(secondMs);
  });

  it('that grows at once is taken for several windows', () => {
    const twice = next(spend(cycle(known())), [{ now: startMs + 10 * secondMs, accepted: 1 }]);
    expect(twice.cycle.windowMs).toBe(1.5 * secondMs);
  });

  it('that is spent after a long ramp goes on at the rate of its last window: that of the whole cycle is far lower', () => {
    const twice = cycle(cycle(known()));
    const { rate, cycle: before } = twice;
    const climbed = { ...rate, rampedMs: rate.rampMs + 3 * rate.climbMs };
    const long = { ...before, openedAtMs: before.openedAtMs! - 20 * secondMs };
    const open = next(spend({ ...twice, rate: climbed, cycle: long }), [{ now: startMs + 3 * secondMs, accepted: 1 }]);
    const { low, to } = { ...open.rate, to: rate.to };
    expect(low).toBeGreaterThan(1.4 * to);
    expect(low).toBeLessThan(meanOnRamp(climbed, 0.5 * secondMs));
  });

  it('is counted anew after a silence', () => {
    const later = next(next(known(), times(10, { accepted: 10 })), [{ now: startMs + 3_600_000, recall: 1 }]);
    expect(later.cycle).toMatchObject({ openedAtMs: startMs + 3_600_000, accepted: 0 });
    const open = next(spend(later), [{ now: startMs + 3_602_000, accepted: 1 }]);
    expect(open.rate.low).toBeGreaterThan(40);
  });
});

describe('a Retry-After', () => {
  const held = (state: TargetControl, forMs: number) => {
    const now = state.rate.lookedAtMs + 100;
    return next(state, [{ refused: 1, holdUntil: now + forMs }]);
  };
  /** Accepts for so long, asks for so long a wait, and accepts the probe after it. */
  const cycle = (state: TargetControl, sendMs: number, waitMs: number) => {
    const shut = held(next(state, times(sendMs / 100 - 1, { accepted: 10 })), waitMs);
    return next(shut, [{ now: state.cycle.openedAtMs! + sendMs + waitMs, accepted: 1, blockedMs: waitMs }]);
  };

  it('of five seconds or more closes as held, whatever else is known; a shorter one does not', () => {
    expect(held(known(), 5_000).closed).toMatchObject({ kind: 'held', askedMs: 5_000 });
    expect(held(known(), 4_900).closed).toBeNull();
  });

  it('probes once a second after its end', () => {
    const shut = held(known(), 20_000);
    expect(next(shut, [sinceStart(21_000)]).closed?.probeGapMs).toBe(1_000);
  });

  it('leaves the rate as it is, where waits and cycles differ', () => {
    const state = cycle(cycle(known(), 10_000, 20_000), 30_000, 20_000);
    expect(state.rate.low).toBeGreaterThan(90);
    expect(state.cycle.windowMs).toBe(0);
  });

  it('of a window shows by cycles of one length though their waits differ', () => {
    const state = cycle(cycle(known(), 10_000, 50_000), 20_000, 40_000);
    expect(state.cycle.windowMs).toBe(60_000);
    expect(state.rate.low).toBeCloseTo((20 * 100) / 60, 0);
  });

  it('of a penalty does not: there the waits have one length, too', () => {
    const state = cycle(cycle(known(), 10_000, 50_000), 10_000, 50_000);
    expect(state.cycle.windowMs).toBe(0);
    expect(state.rate.low).toBeGreaterThan(90);
  });
});

describe('an outage', () => {
  const alarm = { kind: 'trouble', why: 'the API answers 503 to everything' } as const;

  it('goes on at a quarter of the rate that was known, up to the rate at which it came', () => {
    const out = next(known(), [{ alarm, refused: 30 }, ...times(100, { refused: 1, alarm })]);
    const open = next(out, [{ accepted: 1 }]);
    expect(open.rate.phase).toBe('ramp');
    expect(open.rate.low).toBeCloseTo(25);
    expect(open.rate.high).toBe(100);
  });

  it('that comes before anything is known goes on at an eighth of the rate', () => {
    const out = next(control(null, sums({ now: startMs })), [{ alarm }]);
    expect(next(out, [{ accepted: 1 }]).rate).toMatchObject({ phase: 'seek', rate: 2.5 });
  });

  const seeking = () => ({ ...known(), rate: { ...firstRate(startMs, null), rate: 400, low: 200 } });
  const accepting = times(5, { accepted: 20 });

  it('that comes while the rate is doubled may come of it: it goes on from that of the whole cycle, and is not doubled', () => {
    const out = next(seeking(), [...times(32, { accepted: 20 }), { alarm }, ...times(30, { alarm })]);
    expect(next(out, [{ accepted: 1 }]).rate).toMatchObject({ phase: 'ramp', low: 100, high: 400 });
  });

  it('that is short may be throttling: nothing is doubled after it', () => {
    const out = next(seeking(), [...accepting, { alarm }, ...times(3, { alarm })]);
    expect(next(out, [{ accepted: 1 }]).rate).toMatchObject({ phase: 'ramp', low: 100, high: 400 });
  });

  describe('that comes again and again', () => {
    const again = (state: TargetControl, count: number, trouble = 5) =>
      Array.from({ length: count }).reduce<TargetControl>(
        (after) => next(after, [{ accepted: 1 }, ...accepting, { alarm, trouble }, ...times(3, { alarm })]),
        state,
      );

    it('is throttling: from the third short one on errors count as refusals', () => {
      expect(next(again(seeking(), 2), [{ accepted: 1 }]).blame.errors.countUntilMs).toBe(0);
      expect(next(again(seeking(), 3), [{ accepted: 1 }]).blame.errors.countUntilMs).toBeGreaterThan(startMs);
    });

    it('is not where many requests fail before it, too, nor where it is a minute since the last', () => {
      expect(next(again(seeking(), 3, 60), [{ accepted: 1 }]).blame.errors.countUntilMs).toBe(0);
      const late = next(again(seeking(), 2), [{ accepted: 1 }, ...times(590, { accepted: 20 })]);
      expect(next(again(late, 1), [{ accepted: 1 }]).blame.errors.countUntilMs).toBe(0);
    });

    it('is not where the second comes after much less, either: it goes on at the rate of before the first', () => {
      const slow = [{ accepted: 1 }, ...times(5, { accepted: 2 }), { alarm, trouble: 1 }, ...times(3, { alarm })];
      const second = next(next(again(seeking(), 1), slow), [{ accepted: 1 }]);
      expect(second.rate.low).toBe(200);
      const fourth = next(again(second, 2), [{ accepted: 1 }]);
      expect(fourth.blame.errors.countUntilMs).toBe(0);
      expect(fourth.rate.low).toBe(200);
    });
  });
});
