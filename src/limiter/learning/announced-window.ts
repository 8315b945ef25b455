/**
 * The window that a server announces in its headers: a number of requests is left until the end of the window. expunge believes it only while it
 * agrees with the answers: its end stays at the same moment, and the requests left fall by at least the number accepted. A sliding window, a bucket,
 * and a stuck or wrong header do neither. Their limits are learned as if they announced nothing.
 */
export type AnnouncedWindow = {
  /** The earliest end that was claimed. Rounding and delays only make a claimed end later. */
  endsAtMs: number;
  /** Requests left when this window was first seen. */
  first: number;
  /** Requests left by the lowest claim since then. */
  remaining: number;
  sinceMs: number;
  /** Requests accepted since this window was first seen. */
  accepted: number;
  /** Whether its claims were right for long enough, or those of the window before were. */
  isBelieved: boolean;
  /** Whether a claim of an earlier window was wrong. */
  isDoubted: boolean;
  /** Wrong claims in the recent past. Each doubles the time until a window is believed. */
  doubts: number;
  /** Whether it ends too soon to be judged. Only the first such window bounds the rate, because it may be the end of a long window. */
  isShort: boolean;
};

/** The claim of one answer: requests left until `endsAt` (ms, Redis clock), and the requests in a whole window if the server says so. */
export type Claim = { remaining: number; endsAt: number; quota?: number };

const rules = {
  sameEndMs: 1_500, // ends that differ by no more are the same: resets are rounded up to seconds, and answers wait to be reported
  slack: 10, // answers that may have been on their way when a window was first seen
  slackShare: 0.1, // further tolerance, as a share of the answers accepted since
  minUnjudgedPerSecond: 20, // lowest rate until a window is judged
  trustMs: 1_700, // time until a window is believed; it shows whether the end moves
  trustAnswers: 20, // accepted answers until a window is believed
  maxDoubts: 6, // most times that `trustMs` and `trustAnswers` are doubled
  minFreshShare: 0.5, // smallest share of the last window's requests that a new window begins with
  minWindowMs: 3_000, // in a shorter window rounding says more than the header
  minUseUpMs: 500, // shortest time in which the requests left in such a short window are used up
  meanRoundingMs: 500, // mean time by which a reset is rounded up
};

/** Updates the window with what came since the last update. Pure. */
export function watchWindow(
  before: AnnouncedWindow | null,
  seen: { now: number; accepted: number; claim?: Claim | null },
): AnnouncedWindow | null {
  if (before === null)
    return seen.claim ? startWindow(seen.claim, seen.now, { isBelieved: false, isDoubted: false, doubts: 0 }) : null;
  const accepted = before.accepted + seen.accepted;
  const seenFor = Math.min(accepted / rules.trustAnswers, (seen.now - before.sinceMs) / rules.trustMs); // 1 = long enough
  const isBelieved = before.isBelieved || (seenFor >= 2 ** before.doubts && !before.isShort);
  const known = { ...before, accepted, isBelieved };
  const isGone = seen.accepted > 0 && seen.now > 2 * before.endsAtMs - before.sinceMs; // the server announces nothing any more
  if (!seen.claim) return isGone ? null : known;
  if (isConsistent(known, seen.claim)) return narrowWindow(known, seen.claim);
  const isNext =
    seen.now >= before.endsAtMs - rules.sameEndMs && seen.claim.remaining >= rules.minFreshShare * before.first;
  const isDoubted = (before.isDoubted && !before.isShort) || !isNext;
  const doubts = isNext ? before.doubts - (seenFor >= 1 ? 1 : 0) : Math.min(rules.maxDoubts, before.doubts + 1);
  const trust = { isBelieved: isNext && isBelieved, isDoubted, doubts: Math.max(0, doubts) };
  const next = startWindow(seen.claim, seen.now, trust);
  return next.isShort ? { ...next, isBelieved: false, isDoubted: true } : next;
}

function startWindow(
  { remaining, endsAt }: Claim,
  now: number,
  trust: Pick<AnnouncedWindow, 'isBelieved' | 'isDoubted' | 'doubts'>,
): AnnouncedWindow {
  const isShort = endsAt - now < rules.minWindowMs;
  return { endsAtMs: endsAt, first: remaining, remaining, sinceMs: now, accepted: 0, isShort, ...trust };
}

function narrowWindow(known: AnnouncedWindow, { remaining, endsAt }: Claim): AnnouncedWindow {
  return {
    ...known,
    remaining: Math.min(known.remaining, remaining),
    endsAtMs: Math.min(known.endsAtMs, endsAt),
  };
}

function isConsistent(known: AnnouncedWindow, { remaining, endsAt }: Claim): boolean {
  const maxRemaining = known.first - known.accepted * (1 - rules.slackShare) + rules.slack;
  return Math.abs(endsAt - known.endsAtMs) <= rules.sameEndMs && remaining <= maxRemaining;
}

/** Returns the rate, per second, that spreads the requests left evenly to the end of the window; null if no believed window bounds it. */
export function announcedRate(window: AnnouncedWindow | null, now: number): number | null {
  if (window === null || (window.isDoubted && !window.isBelieved)) return null;
  if (!window.isBelieved && now >= window.endsAtMs) return null;
  if (!window.isBelieved) return unjudgedRate(window, now);
  if (now >= window.endsAtMs && window.first === 0) return null;
  if (now >= window.endsAtMs) return (window.first * 1_000) / (window.endsAtMs - window.sinceMs); // until the next window is seen
  return (window.remaining * 1_000) / Math.max(rules.meanRoundingMs, window.endsAtMs - rules.meanRoundingMs - now);
}

/**
 * Returns the rate that uses half of the requests left until the window is judged. If the window ends too soon to be judged, the rate only keeps the
 * search from using up the requests left.
 */
function unjudgedRate({ remaining, isShort, endsAtMs }: AnnouncedWindow, now: number): number {
  if (isShort) return (remaining * 1_000) / Math.min(rules.minUseUpMs, endsAtMs - now);
  return Math.max(rules.minUnjudgedPerSecond, (remaining * 1_000) / (2 * rules.trustMs));
}
