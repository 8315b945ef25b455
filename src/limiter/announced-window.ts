/**
 * What a server announces in its headers: so many requests are left until the end of its window. Believed only while it agrees with what is seen:
 * the end stands still as a moment in time, and what is left falls by at least as much as was accepted. A sliding window, a bucket, and a header
 * that is stuck or wrong do neither, and are learned as if they announced nothing.
 */
export type AnnouncedWindow = {
  endsAtMs: number;
  /** Left when this window was first seen, and of late. */
  first: number;
  remaining: number;
  sinceMs: number;
  /** Accepted since it was first seen. */
  accepted: number;
  /** It was right for long enough, or the window before it was. */
  isBelieved: boolean;
  /** Something that was announced before was wrong. */
  isDoubted: boolean;
};

/** What one answer says: requests left, and until when (ms, Redis clock). */
export type Claim = { remaining: number; endsAt: number };

const rules = {
  sameEndMs: 1_200, // resets are rounded to seconds, and clocks differ
  slack: 10, // answers on their way when it was first seen, …
  slackShare: 0.1, // … and this part of what was accepted since
  judgedPerSecond: 20, // until then the rate is at least this
  seenMs: 1_400, // it is believed after this time …
  seenAnswers: 20, // … and so many accepted answers
  shortestMs: 3_000, // of a window that ends sooner rounding says more than the header
  roundedMs: 500, // a reset is rounded up by this in the mean
};

/** With what came since the last update. Pure. */
export function watchWindow(
  before: AnnouncedWindow | null,
  seen: { now: number; accepted: number; claim?: Claim | null },
): AnnouncedWindow | null {
  if (before === null)
    return seen.claim ? firstSeen(seen.claim, seen.now, { isBelieved: false, isDoubted: false }) : null;
  const accepted = before.accepted + seen.accepted;
  const isBelieved = before.isBelieved || (accepted >= rules.seenAnswers && seen.now - before.sinceMs >= rules.seenMs);
  const known = { ...before, accepted, isBelieved };
  const isGone = seen.accepted > 0 && seen.now > 2 * before.endsAtMs - before.sinceMs; // it announces nothing any more
  if (!seen.claim) return isGone ? null : known;
  if (agrees(known, seen.claim)) return { ...known, remaining: Math.min(known.remaining, seen.claim.remaining) };
  const isNext = seen.now >= before.endsAtMs - rules.sameEndMs;
  return firstSeen(seen.claim, seen.now, { isBelieved: isNext && isBelieved, isDoubted: before.isDoubted || !isNext });
}

function firstSeen(
  { remaining, endsAt }: Claim,
  now: number,
  trust: Pick<AnnouncedWindow, 'isBelieved' | 'isDoubted'>,
): AnnouncedWindow | null {
  if (endsAt - now < rules.shortestMs) return null;
  return { endsAtMs: endsAt, first: remaining, remaining, sinceMs: now, accepted: 0, ...trust };
}

function agrees(known: AnnouncedWindow, { remaining, endsAt }: Claim): boolean {
  const most = known.first - known.accepted * (1 - rules.slackShare) + rules.slack;
  return Math.abs(endsAt - known.endsAtMs) <= rules.sameEndMs && remaining <= most;
}

/** The rate (a second) that spreads what is left evenly to the end of the window; null where nothing is announced or it is not believed. */
export function announcedRate(window: AnnouncedWindow | null, now: number): number | null {
  if (window === null || (window.isDoubted && !window.isBelieved)) return null;
  if (!window.isBelieved) return now < window.endsAtMs ? untilJudged(window) : null;
  if (now >= window.endsAtMs && window.first === 0) return null;
  if (now >= window.endsAtMs) return (window.first * 1_000) / (window.endsAtMs - window.sinceMs); // until the next one is seen
  return (window.remaining * 1_000) / Math.max(rules.roundedMs, window.endsAtMs - rules.roundedMs - now);
}

/** Half of what is left lasts until it is known whether that is true. */
function untilJudged({ remaining }: AnnouncedWindow): number {
  return Math.max(rules.judgedPerSecond, (remaining * 1_000) / (2 * rules.seenMs));
}
