/**
 * What a server announces in its headers: so many requests are left until the end of its window. Believed only while it agrees with what is seen:
 * the end stands still as a moment in time, and what is left falls by at least as much as was accepted. A sliding window, a bucket, and a header
 * that is stuck or wrong do neither, and are learned as if they announced nothing.
 */
export type AnnouncedWindow = {
  /** The earliest end that was claimed: a reset is rounded up, and on its way it only grows. */
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
  /** How often something was wrong of late: each time it takes twice as long until it is believed. */
  doubts: number;
  /** It ends too soon to be judged: only the first of them bounds the rate, as it may be the end of a long one. */
  isShort: boolean;
};

/** What one answer says: requests left, until when (ms, Redis clock), and of how many in a whole window, if it says so. */
export type Claim = { remaining: number; endsAt: number; quota?: number };

const rules = {
  sameEndMs: 1_500, // resets are rounded up to seconds, and answers wait to be reported
  slack: 10, // answers on their way when it was first seen, …
  slackShare: 0.1, // … and this part of what was accepted since
  judgedPerSecond: 20, // until then the rate is at least this
  seenMs: 1_700, // it is believed after this time, in which an end that moves on is found out, …
  seenAnswers: 20, // … and so many accepted answers, …
  mostDoubts: 6, // … both doubled at most so often
  fresh: 0.5, // what begins with less than this part of what the last window had is no new window
  shortestMs: 3_000, // of a window that ends sooner rounding says more than the header
  usedUpMs: 500, // what is left there is not used up sooner than in this time
  roundedMs: 500, // a reset is rounded up by this in the mean
};

/** With what came since the last update. Pure. */
export function watchWindow(
  before: AnnouncedWindow | null,
  seen: { now: number; accepted: number; claim?: Claim | null },
): AnnouncedWindow | null {
  if (before === null)
    return seen.claim ? firstSeen(seen.claim, seen.now, { isBelieved: false, isDoubted: false, doubts: 0 }) : null;
  const accepted = before.accepted + seen.accepted;
  const seenFor = Math.min(accepted / rules.seenAnswers, (seen.now - before.sinceMs) / rules.seenMs); // 1 = long enough
  const isBelieved = before.isBelieved || (seenFor >= 2 ** before.doubts && !before.isShort);
  const known = { ...before, accepted, isBelieved };
  const isGone = seen.accepted > 0 && seen.now > 2 * before.endsAtMs - before.sinceMs; // it announces nothing any more
  if (!seen.claim) return isGone ? null : known;
  if (agrees(known, seen.claim)) return narrowed(known, seen.claim);
  const isNext = seen.now >= before.endsAtMs - rules.sameEndMs && seen.claim.remaining >= rules.fresh * before.first;
  const isDoubted = (before.isDoubted && !before.isShort) || !isNext;
  const doubts = isNext ? before.doubts - (seenFor >= 1 ? 1 : 0) : Math.min(rules.mostDoubts, before.doubts + 1);
  const trust = { isBelieved: isNext && isBelieved, isDoubted, doubts: Math.max(0, doubts) };
  const next = firstSeen(seen.claim, seen.now, trust);
  return next.isShort ? { ...next, isBelieved: false, isDoubted: true } : next;
}

function firstSeen(
  { remaining, endsAt }: Claim,
  now: number,
  trust: Pick<AnnouncedWindow, 'isBelieved' | 'isDoubted' | 'doubts'>,
): AnnouncedWindow {
  const isShort = endsAt - now < rules.shortestMs;
  return { endsAtMs: endsAt, first: remaining, remaining, sinceMs: now, accepted: 0, isShort, ...trust };
}

function narrowed(known: AnnouncedWindow, { remaining, endsAt }: Claim): AnnouncedWindow {
  return {
    ...known,
    remaining: Math.min(known.remaining, remaining),
    endsAtMs: Math.min(known.endsAtMs, endsAt),
  };
}

function agrees(known: AnnouncedWindow, { remaining, endsAt }: Claim): boolean {
  const most = known.first - known.accepted * (1 - rules.slackShare) + rules.slack;
  return Math.abs(endsAt - known.endsAtMs) <= rules.sameEndMs && remaining <= most;
}

/** The rate (a second) that spreads what is left evenly to the end of the window; null where nothing is announced or it is not believed. */
export function announcedRate(window: AnnouncedWindow | null, now: number): number | null {
  if (window === null || (window.isDoubted && !window.isBelieved)) return null;
  if (!window.isBelieved && now >= window.endsAtMs) return null;
  if (!window.isBelieved) return untilJudged(window, now);
  if (now >= window.endsAtMs && window.first === 0) return null;
  if (now >= window.endsAtMs) return (window.first * 1_000) / (window.endsAtMs - window.sinceMs); // until the next one is seen
  return (window.remaining * 1_000) / Math.max(rules.roundedMs, window.endsAtMs - rules.roundedMs - now);
}

/**
 * Half of what is left lasts until it is known whether that is true. Where the window ends too soon to know, the search for the rate goes on, and
 * is only kept from using up what is left.
 */
function untilJudged({ remaining, isShort, endsAtMs }: AnnouncedWindow, now: number): number {
  if (isShort) return (remaining * 1_000) / Math.min(rules.usedUpMs, endsAtMs - now);
  return Math.max(rules.judgedPerSecond, (remaining * 1_000) / (2 * rules.seenMs));
}
