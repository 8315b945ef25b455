import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { learnRate, recallRate } from '../../../../src/limiter/learning/learn-rate.ts';
import { firstRate, type LearnedRate, type Observation } from '../../../../src/limiter/learning/learned-rate.ts';
import { observation } from '../../../support/observations.ts';

/** A target whose limit was found to be about 1,000/s; its ramp is `rampedMs` old and shows `accepted` clean answers. */
function onRamp(rampedMs: number, over: Partial<LearnedRate> = {}): LearnedRate {
  const rate = 980 + (rampedMs / 5000) * 35;
  return {
    ...firstRate(0, null),
    phase: 'ramp',
    rate,
    low: 1000,
    high: 1005,
    from: 980,
    to: 1015,
    rampMs: 5000,
    rampedMs,
    epoch: 7,
    dropEpoch: 3,
    lookedAtMs: rampedMs,
    sampleWindow: {
      isAfterRefusal: true,
      waitMs: 1_000,
      openMs: rampedMs,
      allowed: rampedMs,
      accepted: rampedMs,
      refused: 0,
      acceptedTotal: 0.98 * rampedMs,
      refusedTotal: 0,
    },
    ...over,
  };
}

const learn = (state: LearnedRate, seen: Partial<Observation> & { now: number }, ceiling: number | null = null) =>
  learnRate(state, observation(seen), ceiling);

describe('seek', () => {
  it('starts at 20 a second, or at the ceiling', () => {
    expect(firstRate(0, null).rate).toBe(20);
    expect(firstRate(0, 500).rate).toBe(500);
  });

  it('doubles in a new epoch after four hundredths of a second of clean answers', () => {
    const next = learn({ ...firstRate(0, null), rate: 320 }, { now: 100, accepted: 13, sent: 32 });
    expect(next).toMatchObject({ phase: 'seek', rate: 640, low: 320, epoch: 2 });
    expect(learn({ ...firstRate(0, null), rate: 320 }, { now: 100, accepted: 12, sent: 32 }).rate).toBe(320);
  });

  it('waits for answers to permits of the present epoch', () => {
    const next = learn({ ...firstRate(0, null), rate: 320 }, { now: 100, accepted: 32, currentAccepted: 5 });
    expect(next).toMatchObject({ rate: 320, epoch: 1 });
  });

  it('does not double while less than three quarters of the rate is used', () => {
    const next = learn({ ...firstRate(0, null), rate: 320 }, { now: 200, accepted: 40, sent: 40 });
    expect(next.rate).toBe(320);
  });

  it('does not double at the ceiling', () => {
    const state = { ...firstRate(0, null), rate: 400 };
    expect(learn(state, { now: 100, accepted: 40 }, 400)).toMatchObject({ rate: 400, epoch: state.epoch });
    expect(learn(state, { now: 100, accepted: 40 })).toMatchObject({ rate: 800 });
  });
});

describe('what was answered', () => {
  /** Looks every 100 ms at work of 50 a second, for so long; what is allowed beyond it is not used. */
  const work = (forMs: number, perSecond = 50, ceiling: number | null = null) => {
    let state = firstRate(0, ceiling);
    for (let now = 100; now <= forMs; now += 100) {
      const sent = perSecond / 10;
      state = learn(state, { now, accepted: sent, sent, busy: 1, reports: 1 }, ceiling);
    }
    return state;
  };

  it('is the rate over about a second, however often it is looked at', () => {
    expect(work(8_000).answered).toBeCloseTo(50, 1);
    expect(learn(firstRate(0, null), { now: 8_000, accepted: 400 }).answered).toBeCloseTo(50, 1);
    expect(learn(firstRate(0, null), { now: 0, accepted: 10 }).answered).toBe(10);
    const trial = work(200);
    expect(trial.answered).toBeGreaterThan(8);
    expect(trial.answered).toBeLessThan(10);
  });

  it('is where the next work begins, not what a few clean answers let a seek believe', () => {
    const worked = work(4_000);
    expect(worked.rate).toBeGreaterThan(100);
    const next = learn(worked, { now: 7_000 });
    expect(next.rate).toBeCloseTo(worked.answered);
    expect(next.low).toBeCloseTo(worked.answered);
    expect(learn(worked, { now: 5_400 }).rate, 'negative control: nobody has left').toBe(worked.rate);
    const held = learn(worked, { now: 7_000, blockedMs: 2_900 });
    expect(held.rate, 'nor while it had to wait').toBe(worked.rate);
  });

  it('lets the next work begin no lower than if nothing were known', () => {
    const trial = work(200);
    expect(learn(trial, { now: 7_000 })).toMatchObject({ rate: 20, low: trial.answered });
    expect(recallRate(trial, 90_000)).toMatchObject({ rate: 20, low: 0.9 * trial.answered });
    expect(learn(work(200, 50, 400), { now: 7_000 }, 400).rate).toBe(400);
    expect(recallRate(work(4_000), 90_000).rate).toBeCloseTo(0.9 * work(4_000).answered);
  });

  it('says nothing where a limit is known', () => {
    const known = { ...onRamp(4_000), answered: 50 };
    expect(learn(known, { now: 9_000 }).rate).toBe(known.rate);
  });
});

describe('measure', () => {
  const first = learn({ ...firstRate(0, null), rate: 640, low: 320 }, { now: 100, accepted: 50, refused: 14 });

  it('holds the rate at the first refusals', () => {
    expect(first).toMatchObject({ phase: 'measure', rate: 640, epoch: 1 });
  });

  it('takes the accepted share of the rate for the limit, without the first moments, which are burst', () => {
    let state = learn(first, { now: 200, accepted: 64 });
    for (const now of [300, 400, 500]) state = learn(state, { now, accepted: 48, refused: 16 });
    expect(state).toMatchObject({ phase: 'ramp', low: 480, high: 600 });
    expect(state.rate).toBeCloseTo(480 * 0.98);
  });

  it('goes on where nothing more is refused: that was not about the rate', () => {
    let state = first;
    for (const now of [200, 300, 400, 500]) state = learn(state, { now, accepted: 64 });
    expect(state).toMatchObject({ phase: 'seek', rate: 640 });
    expect(learn(state, { now: 600, accepted: 64 })).toMatchObject({ phase: 'seek', rate: 1280 });
  });

  it('seeks on also after an earlier refusal with a wait, because no ramp has begun yet', () => {
    let state: LearnedRate = { ...first, high: 640 };
    for (const now of [200, 300, 400, 500]) state = learn(state, { now, accepted: 64 });
    expect(learn(state, { now: 600, accepted: 64 })).toMatchObject({ phase: 'seek', rate: 1280 });
  });

  it('believes no share below a quarter: that is a spent quota or an outage', () => {
    let state = first;
    for (const now of [200, 300, 400, 500]) state = learn(state, { now, refused: 64 });
    expect(state).toMatchObject({ phase: 'ramp', low: 160 });
  });

  it('is not tried at rates where it would take long', () => {
    const once = learn({ ...firstRate(0, null), rate: 40, low: 20 }, { now: 100, accepted: 3, refused: 1 });
    expect(once).toMatchObject({ phase: 'seek', rate: 20, high: 40 }); // it is tried again first
    const twice = learn({ ...once, rate: 40 }, { now: 200, accepted: 3, refused: 1 });
    expect(twice).toMatchObject({ phase: 'ramp', low: 20, high: 40 });
  });
});

describe('ramp', () => {
  it('creeps from under low to over high, in one epoch', () => {
    const next = learn(onRamp(1000), { now: 1100, accepted: 98 });
    expect(next.rate).toBeCloseTo(980 + (1100 / 5000) * 35);
    expect(next.epoch).toBe(7);
  });

  it('climbs ever faster once it is past high', () => {
    const rates = [6000, 7500, 10_000].map((ms) => learn(onRamp(ms), { now: ms + 100, accepted: 100 }).rate);
    expect(rates[0]).toBeCloseTo(1020, 0);
    expect(rates[1]).toBeGreaterThan(1070);
    expect(rates[2]).toBeGreaterThan(1480);
  });

  it('that climbs into the end of a known window measures nothing, and settles on its last rates', () => {
    const { rate } = onRamp(9_000, { climbMs: 10_000 });
    const state = onRamp(19_000, { climbMs: 10_000, cycleMs: 10_000, rate: 1_250 });
    const next = learnRate(state, observation({ now: 19_100, accepted: 60, refused: 60 }), null, 10_000);
    expect(next).toMatchObject({ phase: 'ramp', high: 1_250 });
    expect(next.low).toBeGreaterThan(rate);
    expect(learn(state, { now: 19_100, accepted: 60, refused: 60 }).phase).toBe('measure');
  });

  it('stands still while there is no work for the whole rate, and while nothing may leave', () => {
    expect(learn(onRamp(1000), { now: 1100, accepted: 60 }).rampedMs).toBe(1000);
    expect(learn(onRamp(1000), { now: 1100, accepted: 98, blockedMs: 100 }).rampedMs).toBe(1000);
  });

  it('ends at a refusal with what was accepted as low and the refused rate as high', () => {
    const next = learn(onRamp(4000), { now: 4100, accepted: 98, refused: 2 });
    expect(next).toMatchObject({ phase: 'ramp', epoch: 8, dropEpoch: 3, high: onRamp(4000).rate });
    expect(next.low).toBeGreaterThan(990);
    expect(next.low).toBeLessThan(1005);
    expect(next.validFromMs).toBeGreaterThan(4200);
  });

  it('takes longer the more answers the last refusal cost, up to 15 seconds', () => {
    const lengths = [2, 60, 900].map((refused) => learn(onRamp(4000), { now: 4100, accepted: 98, refused }).rampMs);
    expect(lengths[0]).toBe(5000);
    expect(lengths[1]).toBeGreaterThan(9000);
    expect(lengths[2]).toBe(15_000);
  });

  it('measures anew when the limit turns out to lie far above high', () => {
    expect(learn(onRamp(9000), { now: 9100, accepted: 98, refused: 20 })).toMatchObject({ phase: 'measure', epoch: 7 });
  });

  it('does not let refused permits of an older epoch cut the rate', () => {
    const next = learn(onRamp(4000), { now: 4100, accepted: 98, refused: 50, currentRefused: 0, sent: 98 });
    expect(next).toMatchObject({ phase: 'ramp', epoch: 7 });
  });
});

describe('fall', () => {
  it('follows at once when many are refused early in a ramp, and drops old leases', () => {
    const next = learn(onRamp(500), { now: 600, accepted: 0, refused: 400 });
    expect(next.low / onRamp(500).rate).toBeCloseTo(500 / 900, 2);
    expect(next).toMatchObject({ epoch: 8, dropEpoch: 8 });
  });

  it('ignores a few refusals early in a ramp', () => {
    expect(learn(onRamp(500), { now: 600, accepted: 97, refused: 3 })).toMatchObject({ epoch: 7, low: 1000 });
  });
});

describe('Retry-After', () => {
  const blocked = { now: 4100, accepted: 98, refused: 1, blockedUntilMs: 5100 };

  it('is a wait, not a new rate: the limit lies so far under the refused rate that a burst of 50 ms was sent above it', () => {
    const next = learn(onRamp(4000), blocked);
    expect(next.low).toBeGreaterThan(975);
    expect(next.low).toBeLessThan(990);
    expect(next.rate).toBeGreaterThan(next.low * 0.99);
  });

  describe('for requests that had stood still on their way', () => {
    const usual = onRamp(4000, { latencyMs: 20, excusedAtMs: -60_000 });
    const late = (ms: number, now = 4100) => ({
      now,
      accepted: 98,
      refused: 1,
      blockedUntilMs: now + 1_000,
      latency: { count: 98, sumMs: 98 * ms },
    });

    it('is obeyed, and the ramp goes on after it in a new epoch', () => {
      const next = learn(usual, late(81));
      expect(next).toMatchObject({ phase: 'ramp', low: 1000, high: 1005, from: 980, to: 1015, rampMs: 5000 });
      expect([next.rate, next.rampedMs, next.epoch, next.excusedAtMs]).toEqual([usual.rate, 4000, 8, 4100]);
      expect(next.validFromMs).toBe(5100);
    });

    it('is known by answers that took much longer than usual', () => {
      expect(learn(usual, late(80)).low).toBeLessThan(1000);
      expect(learn({ ...usual, latencyMs: 0 }, late(81)).low).toBeLessThan(1000);
      expect(learn({ ...usual, latencyMs: 50 }, late(140)).low).toBeLessThan(1000);
      expect(learn({ ...usual, latencyMs: 50 }, late(141)).low).toBe(1000);
    });

    it('may come a moment later than those answers', () => {
      const seen = { ...late(81), refused: 0, blockedUntilMs: 0 };
      const refusedAfter = (ms: number) => learn(learn(usual, seen), { ...blocked, now: 4100 + ms }).low;
      expect(refusedAfter(200)).toBe(1000);
      expect(refusedAfter(201)).toBeLessThan(1000);
    });

    it('lowers the rate where it came of that only some seconds before: late answers may come of the rate, too', () => {
      const secondAfter = (ms: number) => {
        const first = { ...usual, excusedAtMs: 4100 - ms };
        return learn(first, late(81)).low;
      };
      expect(secondAfter(8_000)).toBe(1000);
      expect(secondAfter(7_999)).toBeLessThan(1000);
    });

    it('ends a window where the target is known to have them', () => {
      const next = learnRate(usual, observation(late(81)), null, 10_000);
      expect(next.excusedAtMs).toBe(usual.excusedAtMs);
    });
  });

  it('counts answers to what left before its end for the old epoch', () => {
    expect(learn(onRamp(4000), blocked).validFromMs).toBeGreaterThan(5100);
  });

  it('makes the next ramp so long that waiting costs three percent of the time', () => {
    expect(learn(onRamp(4000), blocked).rampMs).toBeCloseTo(33_333, -2);
    expect(learn(onRamp(4000), { ...blocked, blockedUntilMs: 6100 }).rampMs).toBeCloseTo(66_667, -2);
  });

  it('looks sooner while the bounds are far apart', () => {
    const seeking = learn(
      { ...firstRate(0, null), rate: 640, low: 320 },
      { now: 100, refused: 5, blockedUntilMs: 1100 },
    );
    expect(seeking).toMatchObject({ phase: 'seek', rate: 320, high: 640 }); // one refusal shows little
    const again = learn({ ...seeking, rate: 640 }, { now: 1_300, refused: 5, blockedUntilMs: 2_300 });
    expect(again).toMatchObject({ phase: 'ramp', low: 320, high: 640, rampMs: 5000 });
  });

  /** After three ramps that lasted so long and were then refused though they began at what was thought to be the limit. */
  const afterThreeRamps = (openMs: number) => {
    let state = onRamp(0);
    for (const now of [5000, 10_000, 15_000]) {
      const sampleWindow = { ...state.sampleWindow, openMs, allowed: openMs, accepted: 0.9 * openMs };
      state = { ...state, rampedMs: 1500, lookedAtMs: now - 100, sampleWindow };
      state = learn(state, { now, accepted: 98, refused: 1, blockedUntilMs: now + 1000 });
    }
    return state;
  };

  it('is blamed on a larger burst when ramps began above the limit again and again', () => {
    expect(afterThreeRamps(2_500)).toMatchObject({ earlyRamps: 3, shortRamps: 0 });
  });

  it('tells nothing of a burst where the ramps were short: the limit is lower', () => {
    const state = afterThreeRamps(500);
    expect(state.earlyRamps).toBe(0);
    expect(state.low).toBeLessThan(900);
  });
});

describe('refusals with waits', () => {
  const wait = (now: number, seen: Partial<Observation> = {}) => ({
    now,
    refused: 1,
    blockedUntilMs: now + 1_000,
    ...seen,
  });

  it('that come at a rate far below the one allowed lower it to what was accepted, not to half', () => {
    const allowed = onRamp(0, {
      lookedAtMs: 0,
      demand: { sent: 400, accepted: 400, allowed: 1_000, reports: 10, busy: 0 },
    });
    const sampleWindow = { ...allowed.sampleWindow, openMs: 900, allowed: 900, accepted: 360, acceptedTotal: 440 };
    const next = learn({ ...allowed, lookedAtMs: 900, sampleWindow }, wait(1_000, { accepted: 40 }));
    expect(next.low).toBeGreaterThan(440);
    expect(next.low).toBeLessThan(500);
  });

  it('lower the rate at their second early end to what was accepted since the refusal before, waits included', () => {
    const early = { ...onRamp(300).sampleWindow, openMs: 300, allowed: 300, accepted: 160, acceptedTotal: 290 };
    const first = learn(onRamp(300, { sampleWindow: early }), wait(400, { accepted: 10 }));
    expect(first.sure).toBeCloseTo((300 * 1_000) / 1_400, 0);
    expect(first.low).toBeGreaterThan(2 * first.sure);
    const again = { ...first, rampedMs: 300, lookedAtMs: 1_700, sampleWindow: { ...first.sampleWindow, ...early } };
    const second = learn(again, wait(1_800, { accepted: 10 }));
    expect(second.low).toBe(second.sure);
    expect(second.low).toBeGreaterThan(200);
    expect(second.high).toBeGreaterThan(2 * second.low);
  });

  it('make sure of no more than is accepted once the limit has fallen', () => {
    const healthy = onRamp(4_000, { sure: 900 });
    const fallen = {
      ...healthy.sampleWindow,
      openMs: 1_000,
      allowed: 1_000,
      accepted: 100,
      acceptedTotal: 100,
      refused: 20,
    };
    expect(learn({ ...healthy, sampleWindow: fallen }, wait(4_100)).sure).toBeLessThan(100);
    expect(learn(healthy, wait(4_100, { accepted: 98 })).sure).toBe(0.99 * 900);
    const unknown = { ...healthy, sure: 0, sampleWindow: { ...healthy.sampleWindow, isAfterRefusal: false } };
    expect(learn(unknown, wait(4_100, { accepted: 98 })).sure).toBe(0);
  });

  it('of everything are no measure of a rate: it stays until the target is closed', () => {
    const state = onRamp(1_000, { sampleWindow: { ...onRamp(0).sampleWindow, openMs: 600, allowed: 600, refused: 8 } });
    expect(learn(state, { now: 1_100, refused: 4 })).toMatchObject({ low: 1_000, rate: state.rate });
  });
});

describe('a refusal at once after a wait', () => {
  const refusedAtOnce = { now: 5_000, refused: 1, blockedUntilMs: 6_000 };

  it('is a deep fall of the limit, unless the target has windows: then it is the end of one', () => {
    const begun = { ...onRamp(0), lookedAtMs: 4_900 };
    expect(learn(begun, refusedAtOnce).low).toBeLessThan(300);
    expect(learnRate(begun, observation(refusedAtOnce), null, 60_000).low).toBeGreaterThan(400);
  });
});

describe('recall', () => {
  it('goes on at nine tenths of what was learned', () => {
    const state = recallRate(onRamp(4000), 900_000);
    expect(state).toMatchObject({ phase: 'ramp', low: 900, high: 1005, lookedAtMs: 900_000 });
  });

  it('seeks on when nothing was learned', () => {
    expect(recallRate(firstRate(0, null), 900_000)).toMatchObject({ phase: 'seek', rate: 20, lookedAtMs: 900_000 });
  });
});

test('whatever is seen, the rate is above none, and epochs only rise', () => {
  const count = fc.nat(2000);
  const look = fc.record({
    afterMs: fc.integer({ min: 1, max: 2000 }),
    blocked: fc.boolean(),
    accepted: count,
    refused: fc.oneof(fc.constant(0), count),
    sent: count,
    tripped: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(look, { maxLength: 60 }), fc.option(fc.integer({ min: 1, max: 5000 })), (looks, ceiling) => {
      let state = firstRate(0, ceiling);
      let now = 0;
      for (const { afterMs, blocked, ...seen } of looks) {
        now += afterMs;
        const next = learn(state, { now, ...seen, blockedUntilMs: blocked ? now + 1000 : 0 }, ceiling);
        expect(next.rate).toBeGreaterThan(0);
        expect(next.epoch).toBeGreaterThanOrEqual(state.epoch);
        expect(JSON.parse(JSON.stringify(next))).toEqual(next);
        state = next;
      }
    }),
  );
});
