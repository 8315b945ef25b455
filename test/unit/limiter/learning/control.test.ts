import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { control, knownRate, type TargetControl } from '../../../../src/limiter/learning/control.ts';
import type { Sums } from '../../../../src/limiter/learning/sums.ts';
import { sized } from '../../../support/size.ts';
import { sums } from '../../../support/sums.ts';

/** The states of a target from its first call on, after each of these looks. */
function follow(looks: (Partial<Sums> & { now: number })[], begin: TargetControl | null = null): TargetControl[] {
  const states: TargetControl[] = [];
  for (const look of looks) {
    states.push(control(states.at(-1) ?? begin, sums(look)));
  }
  return states;
}

const first = control(null, sums({ now: 0 }));
const alarm = { kind: 'unreachable', why: 'connection refused' } as const;

describe('a target that nothing is known of', () => {
  it('is open, begins slowly or at its ceiling, with all connections there are', () => {
    expect(first).toMatchObject({ epoch: 1, closed: null, announced: null, rate: { phase: 'seek', rate: 20 } });
    expect(first.inFlight.limit).toBe(64);
    expect(control(null, sums({ now: 0, ceiling: 500 })).rate.rate).toBe(500);
  });
});

describe('a wait that an outage cuts short', () => {
  it('right at the beginning is not compared with a cycle before it, for there is none', () => {
    const waits = { now: 1, accepted: 1, refused: 1, holdUntil: 5_001, ceiling: 1_000 };
    const away = { now: 2, accepted: 1, alarm, ceiling: 1_000 };
    const states = follow(
      [waits, away, { now: 3, accepted: 1, ceiling: 1_000 }],
      control(null, sums({ now: 0, ceiling: 1_000 })),
    );
    for (const { rate } of states) expect([rate.rate, rate.low, rate.high, rate.to].every(Number.isFinite)).toBe(true);
  });
});

describe('a state of another version', () => {
  it('is learned again, in a new epoch', () => {
    const known = { ...first.rate, phase: 'ramp', rate: 98, low: 100, high: 101 } as const;
    const { version: _, ...other } = { ...first, epoch: 9, rate: known };
    const taken = control(other as TargetControl, sums({ now: 1_000 }));
    expect(taken).toEqual({ ...control(null, sums({ now: 1_000 })), epoch: 10 });
  });
});

describe('a clock that is set back', () => {
  it('leaves the rate, and no time that lies ahead', () => {
    const far = { lateAtMs: 3_600_000, excusedAtMs: 3_600_000, lookedAtMs: 3_600_000 };
    const known = { ...first.rate, phase: 'ramp', rate: 98, low: 100, high: 101, latencyMs: 9, ...far } as const;
    const { rate, epoch, blame } = control({ ...first, epoch: 9, rate: known }, sums({ now: 1_000 }));
    expect(rate).toMatchObject({ low: 90, high: 101, lateAtMs: 0, excusedAtMs: 0, latencyMs: 0 });
    expect([epoch, rate.lookedAtMs, blame.lookedAtMs]).toEqual([10, 1_000, 1_000]);
  });
});

describe('an alarm', () => {
  it('closes at once, with its kind and its words, in a new epoch', () => {
    const [closed] = follow([{ now: 100, accepted: 3, alarm }], first);
    expect(closed).toMatchObject({ epoch: 2, closed: { ...alarm, sinceMs: 100 }, rate: { rate: 20 } });
  });

  it('of another kind is the one that is told from then on', () => {
    const trouble = { kind: 'trouble', why: 'the API answers 503 to everything' } as const;
    const [, later] = follow(
      [
        { now: 100, alarm },
        { now: 600, trouble: 1, alarm: trouble },
      ],
      first,
    );
    expect(later).toMatchObject({ epoch: 2, closed: { ...trouble, sinceMs: 100 } });
  });
});

describe('a release by an operator', () => {
  it('opens, forgets what the server announced, and leaves the rate as it is', () => {
    const claim = { remaining: 100, endsAt: 60_000 };
    const closed = follow([{ now: 100, claim, alarm }], first).at(-1)!;
    expect(closed.announced).not.toBeNull();
    const [released] = follow([{ now: 1_000, released: 1 }], closed);
    expect(released).toMatchObject({ closed: null, announced: null, rate: { rate: 20 } });
    expect(follow([{ now: 1_000 }], closed)[0]!.closed).not.toBeNull();
  });

  it('does not keep it open for what comes after', () => {
    const closed = follow([{ now: 100, alarm }], first).at(-1)!;
    const [released, again] = follow(
      [
        { now: 1_000, released: 1 },
        { now: 1_100, alarm },
      ],
      closed,
    );
    expect([released!.closed, again!.closed?.sinceMs]).toEqual([null, 1_100]);
  });
});

describe('after a minute of silence', () => {
  it('goes on a little under what was learned, in a new epoch, also under a ceiling', () => {
    const work = Array.from({ length: 60 }, (_, n) => ({ now: 100 * (n + 1), accepted: 4 }));
    const learned = follow(work, first).at(-1)!;
    const [recalled] = follow([{ now: 90_000, recall: 1 }], learned);
    expect(recalled!.rate.rate).toBeCloseTo(0.9 * 40, 0);
    expect(recalled!.epoch).toBe(learned.epoch + 1);
    const [bounded] = follow([{ now: 90_000, recall: 1, ceiling: 300 }], learned);
    expect(bounded).toEqual(recalled);
  });
});

describe('a ceiling', () => {
  it('that is lifted again leaves the rate that was known before', () => {
    const looks = Array.from({ length: 5 }, (_, n) => ({ now: 100 * (n + 1), accepted: 2 * 2 ** n }));
    const known = follow(looks, first).at(-1)!;
    expect(known.rate).toMatchObject({ phase: 'seek', rate: 320, low: 160 });
    const [lowered, lifted] = follow(
      [
        { now: 600, ceiling: 5 },
        { now: 1_700, accepted: 5 },
      ],
      known,
    );
    expect([lowered!.rate.rate, lowered!.rate.low]).toEqual([5, 160]);
    expect(lifted!.rate.rate).toBeGreaterThanOrEqual(160);
  });

  it('is also what a server announces, so that the next window is met with a rate', () => {
    const said = (ms: number) => ({ remaining: Math.max(0, 300 - ms / 50), endsAt: 10_000 });
    const looks = Array.from({ length: 30 }, (_, n) => 100 * (n + 1)).map((now) => ({
      now,
      accepted: 2,
      claim: said(now),
    }));
    const known = follow(looks, first).at(-1)!;
    expect(known.rate.rate).toBeLessThanOrEqual(240 / 6.5);
    expect(known.rate.rate).toBeGreaterThan(20);
    const begun = { now: 10_100, accepted: 1, claim: { remaining: 290, endsAt: 20_000 } };
    const spent = { now: 11_000, accepted: 9, claim: { remaining: 0, endsAt: 20_000 } }; // by others
    const states = follow([begun, spent, { now: 15_000 }, { now: 20_001 }, { now: 20_101 }], known);
    expect(states[2]!.rate.rate).toBeLessThanOrEqual(0.05);
    expect(states.at(-1)!.rate.rate).toBeGreaterThanOrEqual(known.rate.answered);
  });

  /** A ramp at 300/s that lasts three seconds. */
  const settled: TargetControl = {
    ...first,
    rate: {
      ...first.rate,
      phase: 'ramp',
      rate: 300,
      low: 300,
      high: 303,
      from: 294,
      to: 306,
      rampMs: 5_000,
      rampedMs: 2_500,
    },
  };
  const every100ms = (count: number, fromMs: number, look: Partial<Sums>) =>
    Array.from({ length: count }, (_, n) => ({ now: fromMs + 100 * (n + 1), ...look }));

  it.each([
    ['of the target', { ceiling: 2, accepted: 1 }],
    ['that its headers announce', { claim: { remaining: 0, endsAt: 9_000 } }],
  ])('%s leaves what was known before, whatever is refused under it', (_, under) => {
    const refused = every100ms(40, 100, { refused: 1, ...under });
    const states = follow([{ ...under, now: 100, accepted: 30 }, ...refused], settled);
    for (const state of states) expect(knownRate(state)).toMatchObject({ low: 300, high: 303 });
    const [after] = follow([{ now: 9_500, released: 1 }], states.at(-1)!);
    expect(after!.rate.rate).toBeGreaterThanOrEqual(290);
  });

  it('is not what lowers a rate that is refused without it', () => {
    const states = follow(every100ms(40, 100, { accepted: 15, refused: 15 }), settled);
    expect(knownRate(states.at(-1)!).low).toBeLessThan(160);
  });

  it('bounds a search that finds a lower limit under it', () => {
    const states = follow(
      [{ now: 100, ceiling: 50 }, ...every100ms(8, 200, { accepted: 4, refused: 1, ceiling: 50 })],
      settled,
    );
    expect(states.at(-1)!.rate.rate).toBeLessThan(45);
  });
});

test('whatever comes, the rate is above none and never above the ceiling, and the epoch rises by one with each step and each turn', () => {
  const count = fc.oneof(fc.constant(0), fc.nat(5), fc.nat(2_000));
  const look = fc.record({
    afterMs: fc.integer({ min: 1, max: 20_000 }),
    heldMs: fc.oneof(fc.constant(0), fc.nat(60_000)),
    blocked: fc.boolean(),
    accepted: count,
    refused: count,
    trouble: count,
    lost: fc.nat(3),
    starved: fc.nat(1),
    recall: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.constant(1)),
    isReleased: fc.boolean(),
    alarm: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, fc.constant(alarm)),
    claim: fc.option(fc.record({ remaining: fc.nat(3_000), endsInMs: fc.nat(60_000) })),
  });
  const ceilings = fc.option(fc.integer({ min: 1, max: 5_000 }), { nil: 0 });
  fc.assert(
    fc.property(fc.array(look, { maxLength: 60 }), ceilings, (looks, ceiling) => {
      let [now, before]: [number, TargetControl] = [0, control(null, sums({ now: 0, ceiling }))];
      for (const { afterMs, heldMs, blocked, isReleased, claim, ...seen } of looks) {
        now += afterMs;
        const next = control(
          before,
          sums({
            now,
            ceiling,
            ...seen,
            blockedMs: blocked ? afterMs : 0,
            holdUntil: heldMs > 0 ? now + heldMs : 0,
            claim: claim && { remaining: claim.remaining, endsAt: now + claim.endsInMs },
            released: isReleased ? 1 : 0,
          }),
        );
        const isOpen = (state: TargetControl) => state.closed === null;
        const wasOpen = isOpen(before) || isReleased;
        const isStep = next.rate.epoch !== before.rate.epoch || isOpen(next) !== wasOpen;
        expect(next.epoch - before.epoch).toBe(isStep ? 1 : 0);
        expect(next.rate.rate).toBeLessThanOrEqual((isOpen(next) && ceiling) || 1_000_000);
        expect(next.rate.rate).toBeGreaterThanOrEqual(0);
        if (next.announced === null) expect(next.rate.rate).toBeGreaterThanOrEqual(0.05);
        expect(next.inFlight.limit).toBeLessThanOrEqual(64);
        expect(JSON.parse(JSON.stringify(next))).toEqual(next);
        before = next;
      }
    }),
    { numRuns: sized(20, 100) },
  );
});

it('is the same from Redis, also where nobody wanted to send at first', () => {
  for (const most of [0, 64]) {
    const state = control(null, sums({ now: 1, most }));
    expect(JSON.parse(JSON.stringify(state))).toEqual(state);
    expect(control(state, sums({ now: 101, most: 64 })).inFlight.limit).toBe(64);
  }
});
