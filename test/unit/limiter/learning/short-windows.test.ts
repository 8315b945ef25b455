import { describe, expect, it } from 'vitest';
import {
  countMiss,
  type ShortWindows,
  shortWindowRate,
  watchShortWindows,
} from '../../../../src/limiter/learning/short-windows.ts';

type Odd = {
  quota?: number;
  windowMs?: number;
  /** Accepted a second. */
  perSecond?: number;
  /** How long before the end of a window its end is announced to be. */
  endsIn?: number;
  /** Looks that come too late to see the begin of a window. */
  isSeen?: (ms: number) => boolean;
};

/** What is known after looking ten times a second at a server with such windows. */
function watched(
  [fromMs, toMs]: [number, number],
  { quota = 300, windowMs = 1_000, perSecond = 290, endsIn = 1_000, isSeen = () => true }: Odd = {},
  before: ShortWindows | null = null,
): ShortWindows | null {
  let known = before;
  let unseen = 0;
  for (let now = fromMs; now < toMs; now += 100) {
    const accepted = perSecond / 10 + unseen;
    unseen = isSeen(now) ? 0 : accepted;
    const used = ((now % windowMs) * perSecond) / 1_000;
    const claim = { remaining: Math.round(quota - used), endsAt: now + endsIn, quota };
    if (isSeen(now)) known = watchShortWindows(known, { now, accepted, blockedMs: 0, claim });
  }
  return known;
}

const rateOf = (windows: ShortWindows | null) => shortWindowRate(windows);

describe('the rate of short windows', () => {
  it('is known once seven of them began, and is what a whole one holds, but for a hundredth', () => {
    expect(rateOf(watched([0, 7_000]))).toBeNull();
    expect(rateOf(watched([0, 7_100]))).toBeCloseTo(297);
    expect(rateOf(watched([0, 15_000], { quota: 600, windowMs: 2_000 }))).toBeCloseTo(297);
  });

  it('is the same where the begin of a window was not seen', () => {
    const isSeen = (ms: number) => ms < 3_000 || ms > 4_400;
    expect(rateOf(watched([0, 9_100], { isSeen }))).toBeCloseTo(297);
  });

  it('follows a server whose windows become longer', () => {
    const before = watched([0, 20_000]);
    expect(rateOf(watched([20_000, 62_000], { windowMs: 2_000, perSecond: 145 }, before))).toBeCloseTo(148.5);
  });

  it('is not known where half of a window is never used: then nothing shows that it is the limit', () => {
    expect(rateOf(watched([0, 20_000], { perSecond: 180 }))).toBeCloseTo(297);
    expect(rateOf(watched([0, 20_000], { perSecond: 140 }))).toBeNull();
  });

  it('is forgotten where more is accepted than it allows', () => {
    const believed = watched([0, 10_000]);
    const more = { now: 10_000, accepted: 1_000, blockedMs: 0, claim: { remaining: 300, endsAt: 11_000, quota: 300 } };
    expect(rateOf(watchShortWindows(believed, more))).toBeNull();
  });

  it('is looked for anew where another quota is announced, and kept while nothing is, for 10 s', () => {
    const believed = watched([0, 10_000]);
    const silent = (now: number) => watchShortWindows(believed, { now, accepted: 0, blockedMs: 0 });
    expect(rateOf(silent(19_900))).toBeCloseTo(297);
    expect(rateOf(silent(20_000))).toBeNull();
    expect(rateOf(watched([20_000, 20_100], {}, believed))).toBeNull();
    expect(rateOf(watched([10_000, 10_100], { quota: 400 }, believed))).toBeNull();
    expect(rateOf(watched([10_000, 17_200], { quota: 400, perSecond: 380 }, believed))).toBeCloseTo(396);
  });

  it('is not known of windows that are long, hold few requests, or do not begin', () => {
    expect(watched([0, 20_000], { endsIn: 3_100 })).toBeNull();
    expect(watched([0, 20_000], { quota: 99, perSecond: 95 })).toBeNull();
    expect(rateOf(watched([0, 20_000], { windowMs: 100_000, perSecond: 10 }))).toBeNull();
  });

  it('counts no time in which the server asked to wait', () => {
    let known = watched([0, 6_900]);
    known = watchShortWindows(known, {
      now: 7_500,
      accepted: 0,
      blockedMs: 600,
      claim: { remaining: 300, endsAt: 8_500, quota: 300 },
    });
    expect(rateOf(watched([8_000, 14_000], {}, known))).toBeNull();
    expect(rateOf(watched([8_000, 15_100], {}, known))).toBeCloseTo(297);
  });

  it('is a miss where it is refused within 10 s, and none at any other rate', () => {
    const known = { ...watched([0, 10_000])!, epoch: 7 };
    const once = countMiss(known, 7, 9_900);
    expect([once.misses, countMiss(once, 7, 100).misses, countMiss(once, 8, 100).misses]).toEqual([1, 2, 1]);
    expect(countMiss(once, 7, 10_000).misses).toBe(0);
  });
});
