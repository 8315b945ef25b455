import type { Claim } from './announced-window.ts';

/**
 * Windows of a server that says what is left of them, and that end too soon to spread it (see announced-window.ts): how long they are is seen from
 * when they begin, and the limit is what a whole one holds, by its length. Believed while about as much is accepted as that: not less, because
 * then nothing shows that it is the limit, and not more.
 */
export type ShortWindows = {
  /** Requests in a whole window, and left of the present one. */
  quota: number;
  remaining: number;
  /** Accepted since it is watched. */
  accepted: number;
  /** The last of them, the latest last: when each began, and what was accepted before. */
  begun: { atMs: number; accepted: number }[];
  /** The limit (a second), 0 = not known. */
  perSecond: number;
  saidAtMs: number;
  /** The epoch in which the rate was set to that last, and how often in a row it was refused soon then. */
  epoch: number;
  misses: number;
};

const rules = {
  longestMs: 3_000,
  leastQuota: 100, // where a window may begin with a request, one more or less of a smaller quota decides how long it seems
  whole: 0.5, // a window has begun where more is left than before, by at least this part of the quota
  fewest: 6, // windows in a row that tell how long one is, …
  most: 20, // … and at most so many
  least: 0.5, // accepted share of what they held, …
  mostShare: 1.03, // … at most
  spare: 0.01, // less than the limit by this share, for what is late
  silentMs: 10_000, // it says nothing any more
  soonMs: 10_000, // what is refused sooner is not what the server allows
};

/** With what came since the last update. Pure. */
export function watchShortWindows(
  before: ShortWindows | null,
  { now, accepted, blockedMs, claim }: { now: number; accepted: number; blockedMs: number; claim?: Claim | null },
): ShortWindows | null {
  const isSilent = before === null || now - before.saidAtMs > rules.silentMs;
  const known = isSilent ? null : { ...before, accepted: before.accepted + accepted };
  if (!claim?.quota || claim.quota < rules.leastQuota || claim.endsAt - now > rules.longestMs) return known;
  const { remaining, quota } = claim;
  if (known?.quota !== quota)
    return { quota, remaining, accepted: 0, begun: [], perSecond: 0, saidAtMs: now, epoch: 0, misses: 0 };
  const next = { ...known, remaining, saidAtMs: now };
  if (blockedMs > 0) return { ...next, begun: [] }; // a window may begin with the first request after the wait
  const hasBegun = remaining - known.remaining >= rules.whole * quota;
  return hasBegun
    ? judged({ ...next, begun: [...next.begun.slice(-rules.most), { atMs: now, accepted: next.accepted }] })
    : next;
}

function judged(state: ShortWindows): ShortWindows {
  const { begun, quota } = state;
  if (begun.length <= rules.fewest) return state;
  const lengths = begun.slice(1).map(({ atMs }, i) => atMs - begun[i]!.atMs);
  const middle = lengths.toSorted((a, b) => a - b)[lengths.length >> 1]!;
  const windows = lengths.reduce((sum, ms) => sum + Math.round(ms / middle), 0); // the begin of one may have been missed
  const [first, last] = [begun[0]!, begun.at(-1)!];
  const share = (last.accepted - first.accepted) / (quota * windows);
  if (share > rules.mostShare) return { ...state, begun: [], perSecond: 0 };
  return share < rules.least ? state : { ...state, perSecond: (quota * windows * 1_000) / (last.atMs - first.atMs) };
}

/** The rate (a second) that keeps within them; null where it is not known. */
export function rateOfShortWindows(windows: ShortWindows | null): number | null {
  return windows === null || windows.perSecond === 0 ? null : (1 - rules.spare) * windows.perSecond;
}

/** In this epoch a request was refused after `openMs`: soon, if the server allows less than it says. */
export function refusedAt(windows: ShortWindows, epoch: number, openMs: number): ShortWindows {
  if (epoch !== windows.epoch) return windows;
  return { ...windows, misses: openMs < rules.soonMs ? windows.misses + 1 : 0 };
}
