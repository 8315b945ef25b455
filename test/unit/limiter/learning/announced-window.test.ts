import { describe, expect, it } from 'vitest';
import { type AnnouncedWindow, announcedRate, watchWindow } from '../../../../src/limiter/learning/announced-window.ts';

type Look = { now: number; accepted: number; claim?: { remaining: number; endsAt: number } };

/** What is known after these looks. */
function watched(looks: Look[], before: AnnouncedWindow | null = null): AnnouncedWindow | null {
  return looks.reduce(watchWindow, before);
}

/** Ten looks a second; each says how many requests are left until when, `perLook` of them accepted since the one before. */
function looks(
  [fromMs, toMs]: [number, number],
  { perLook = 5, remaining, endsAt }: { perLook?: number; remaining(n: number): number; endsAt(ms: number): number },
): Look[] {
  return Array.from({ length: (toMs - fromMs) / 100 }, (_, n) => {
    const now = fromMs + n * 100;
    return { now, accepted: n === 0 ? 0 : perLook, claim: { remaining: remaining(n), endsAt: endsAt(now) } };
  });
}

/** 3,000 a minute, of which 50 a second are used. */
const trueOnes = (until: number, perLook = 5) =>
  looks([0, until], { perLook, remaining: (n) => 3_000 - perLook * n, endsAt: () => 60_000 });

describe('what a server announces is believed', () => {
  it('after 1.7 s and 20 answers in which it was right', () => {
    expect(watched(trueOnes(1_600))?.isBelieved).toBe(false);
    expect(watched(trueOnes(1_900))?.isBelieved).toBe(true);
    expect(watched(trueOnes(3_000, 0.5))?.isBelieved).toBe(false);
    expect(watched(trueOnes(5_000, 0.5))?.isBelieved).toBe(true);
  });

  it('anew after twice as long, where what follows is no new window: a sliding one has next to nothing left then', () => {
    const first = watched(trueOnes(59_900))!;
    expect(first).toMatchObject({ isBelieved: true, doubts: 0 });
    const sliding = (until: number) =>
      looks([60_100, until], { remaining: (n) => 100 - n, endsAt: () => 120_000, perLook: 1 });
    expect(watched(sliding(60_200), first)).toMatchObject({ isBelieved: false, isDoubted: true, doubts: 1 });
    expect(announcedRate(watched(sliding(62_000), first), 62_000)).toBeNull();
    expect(watched(sliding(63_400), first)?.isBelieved).toBe(false);
    expect(watched(sliding(64_300), first)?.isBelieved).toBe(true);
  });

  it('also where others use the limit, too, and where answers overtake each other', () => {
    const hurried = looks([0, 3_000], { remaining: (n) => 3_000 - 9 * n, endsAt: () => 60_000 });
    expect(watched(hurried)?.isBelieved).toBe(true);
    const mixed = looks([0, 3_000], { remaining: (n) => 3_000 - 5 * n + (n % 2) * 7, endsAt: () => 60_000 });
    expect(watched(mixed)).toMatchObject({ isBelieved: true, remaining: 3_000 - 5 * 28 });
  });

  it('though its end is rounded to seconds', () => {
    const rounded = looks([0, 5_000], {
      remaining: (n) => 3_000 - 5 * n,
      endsAt: (ms) => ms + Math.ceil((60_000 - ms) / 1_000) * 1_000,
    });
    expect(watched(rounded)?.isBelieved).toBe(true);
  });

  it.each([0, 900])(
    'though answers are late, and the server tells its time in whole seconds, from %i ms past one',
    (from) => {
      const lateMs = [0, 400, 300, 500, 100, 250];
      const answers = looks([from, from + 5_000], {
        remaining: (n) => 3_000 - 5 * n,
        endsAt: (ms) => 60_000 + (ms % 1_000) + lateMs[(ms / 100) % lateMs.length]!,
      });
      expect(watched(answers)).toMatchObject({ isBelieved: true, isDoubted: false, endsAtMs: 60_000 });
    },
  );

  it('at once in the window that follows', () => {
    const known = watched(trueOnes(10_000))!;
    const next = watchWindow(known, { now: 60_050, accepted: 1, claim: { remaining: 2_999, endsAt: 120_000 } });
    expect(next).toMatchObject({ isBelieved: true, first: 2_999, remaining: 2_999, endsAtMs: 120_000, accepted: 0 });
  });
});

describe('what a server announces is not believed', () => {
  const isBelieved = (all: Look[]) => watched(all)?.isBelieved ?? false;

  it('where its end moves on', () => {
    expect(isBelieved(looks([0, 20_000], { remaining: (n) => 3_000 - 5 * n, endsAt: (ms) => ms + 60_000 }))).toBe(
      false,
    );
  });

  it('where what is left does not fall', () => {
    const stuck = looks([0, 20_000], { remaining: () => 100, endsAt: () => 60_000 });
    const refilled = looks([0, 20_000], { remaining: (n) => 3_000 - n, endsAt: () => 60_000 });
    // The first slack of some answers is soon used up; from then on it is found out again and again.
    expect([stuck, refilled].map(isBelieved)).toEqual([false, false]);
  });

  it('any more once it jumps within its window', () => {
    const known = watched(trueOnes(10_000))!;
    const jumped = watchWindow(known, { now: 10_000, accepted: 5, claim: { remaining: 2_900, endsAt: 60_000 } });
    expect(jumped?.isBelieved).toBe(false);
    const moved = watchWindow(known, { now: 10_000, accepted: 5, claim: { remaining: 2_400, endsAt: 90_000 } });
    expect(moved?.isBelieved).toBe(false);
  });

  it('for windows that end within three seconds: rounding says more than the header', () => {
    const short = looks([0, 20_000], {
      remaining: (n) => 300 - 5 * (n % 20),
      endsAt: (ms) => 2_000 * (1 + Math.floor(ms / 2_000)),
    });
    expect(isBelieved(short)).toBe(false);
  });

  it('any more once answers came for longer than the window without a word of it', () => {
    const known = watched(trueOnes(10_000))!;
    expect(watched([{ now: 90_000, accepted: 5 }], known)?.isBelieved).toBe(true);
    expect(watched([{ now: 121_000, accepted: 0 }], known)?.isBelieved).toBe(true);
    expect(watched([{ now: 121_000, accepted: 5 }], known)).toBeNull();
  });
});

describe('the announced rate', () => {
  const known = watched(trueOnes(10_000))!;

  it('spreads what is left evenly to the end', () => {
    expect(known.remaining).toBe(2_505);
    expect(announcedRate(known, 10_000)).toBeCloseTo(2_505 / 49.5);
    expect(announcedRate({ ...known, remaining: 100 }, 10_000)).toBeCloseTo(100 / 49.5);
    expect(announcedRate({ ...known, remaining: 0 }, 10_000)).toBe(0);
    expect(announcedRate({ ...known, remaining: 100 }, 59_900)).toBe(200); // the last half second is not cut up
  });

  it('is that of the whole window from its end until the next one is seen', () => {
    expect(announcedRate(known, 60_001)).toBe(50);
  });

  it('spends half of what is left until it is known whether that is true, and never goes below the first rate for it', () => {
    const unjudged = { ...known, isBelieved: false, isDoubted: false };
    expect(announcedRate({ ...unjudged, remaining: 340 }, 10_000)).toBeCloseTo(100);
    expect(announcedRate({ ...unjudged, remaining: 0 }, 10_000)).toBe(20);
    expect(announcedRate({ ...unjudged, remaining: 340 }, 60_001)).toBeNull();
  });

  it('lets the search for a rate not use up what is left of the first window where that ends soon, and only of the first', () => {
    const first = watched([{ now: 0, accepted: 0, claim: { remaining: 300, endsAt: 2_000 } }])!;
    expect(announcedRate(first, 0)).toBe(600);
    const late = watchWindow(first, { now: 1_000, accepted: 250, claim: { remaining: 50, endsAt: 2_000 } });
    expect(announcedRate(late, 1_000)).toBe(100);
    expect(announcedRate(late, 1_800)).toBe(250);
    expect(announcedRate(late, 2_000)).toBeNull();
    const [long, short] = [7_000, 4_000].map((endsAt) =>
      watchWindow(late, { now: 2_000, accepted: 9, claim: { remaining: 300, endsAt } }),
    );
    expect(announcedRate(long!, 2_000)).toBeCloseTo(300 / 3.4);
    expect(announcedRate(short!, 2_000)).toBeNull();
  });

  it('is none where nothing is announced, where it was wrong, and after a window of which nothing was left', () => {
    expect(announcedRate(null, 10_000)).toBeNull();
    expect(announcedRate({ ...known, isBelieved: false, isDoubted: true }, 10_000)).toBeNull();
    expect(announcedRate({ ...known, first: 0, remaining: 0 }, 60_001)).toBeNull();
  });
});
