import type { Claim } from './announced-window.ts';

/**
 * The windows that a server announces, if they end too soon to spread the requests left (see announced-window.ts). Their length follows from the
 * moments when they begin. The limit is the number of requests in a whole window ÷ this length. It is believed only while the target accepts about
 * this number. If it accepts much less, nothing shows that this is the limit; if it accepts more, the limit is higher.
 */
export type ShortWindows = {
  /** Requests in a whole window. */
  quota: number;
  /** Requests left of the present window. */
  remaining: number;
  /** Requests accepted since these windows are watched. */
  accepted: number;
  /** The last windows, oldest first: when each began, and the number of requests accepted before. */
  starts: { atMs: number; accepted: number }[];
  /** Limit, per second; 0 = not known. */
  perSecond: number;
  claimedAtMs: number;
  /** Epoch in which the rate was last set to this limit. */
  epoch: number;
  /** Refusals in a row that came soon after the rate was set to this limit. */
  misses: number;
};

const rules = {
  maxWindowMs: 3_000,
  minQuota: 100, // in a smaller quota, one request more or less changes the apparent length of a window too much
  minNewShare: 0.5, // smallest rise of the requests left that shows a new window, as a share of the quota
  minWindows: 6, // fewest windows in a row that show how long a window is
  maxWindows: 20, // most windows in a row that are compared
  minShare: 0.5, // smallest share of their quota that must be accepted
  maxShare: 1.03, // largest share of their quota that may be accepted
  spareShare: 0.01, // distance of the rate below the limit, for requests that are late
  silentMs: 10_000, // time without a claim after which the server announces nothing any more
  soonMs: 10_000, // a refusal sooner than this shows that the server allows less than it announces
};

/** Updates the windows with what came since the last update. Pure. */
export function watchShortWindows(
  before: ShortWindows | null,
  { now, accepted, blockedMs, claim }: { now: number; accepted: number; blockedMs: number; claim?: Claim | null },
): ShortWindows | null {
  const isSilent = before === null || now - before.claimedAtMs > rules.silentMs;
  const known = isSilent ? null : { ...before, accepted: before.accepted + accepted };
  if (!claim?.quota || claim.quota < rules.minQuota || claim.endsAt - now > rules.maxWindowMs) return known;
  const { remaining, quota } = claim;
  if (known?.quota !== quota)
    return { quota, remaining, accepted: 0, starts: [], perSecond: 0, claimedAtMs: now, epoch: 0, misses: 0 };
  const next = { ...known, remaining, claimedAtMs: now };
  if (blockedMs > 0) return { ...next, starts: [] }; // a window may begin with the first request after the wait
  const hasBegun = remaining - known.remaining >= rules.minNewShare * quota;
  return hasBegun
    ? judgeWindows({
        ...next,
        starts: [...next.starts.slice(-rules.maxWindows), { atMs: now, accepted: next.accepted }],
      })
    : next;
}

function judgeWindows(state: ShortWindows): ShortWindows {
  const { starts, quota } = state;
  if (starts.length <= rules.minWindows) return state;
  const lengths = starts.slice(1).map(({ atMs }, i) => atMs - starts[i]!.atMs);
  const middle = lengths.toSorted((a, b) => a - b)[lengths.length >> 1]!;
  const windows = lengths.reduce((sum, ms) => sum + Math.round(ms / middle), 0); // the start of a window may have been missed
  const [first, last] = [starts[0]!, starts.at(-1)!];
  const share = (last.accepted - first.accepted) / (quota * windows);
  if (share > rules.maxShare) return { ...state, starts: [], perSecond: 0 };
  return share < rules.minShare ? state : { ...state, perSecond: (quota * windows * 1_000) / (last.atMs - first.atMs) };
}

/** Returns the rate, per second, that keeps within these windows; null if it is not known. */
export function shortWindowRate(windows: ShortWindows | null): number | null {
  return windows === null || windows.perSecond === 0 ? null : (1 - rules.spareShare) * windows.perSecond;
}

/** Counts a refusal after `openMs` in this epoch as a miss if it came soon; a later refusal ends the row of misses. */
export function countMiss(windows: ShortWindows, epoch: number, openMs: number): ShortWindows {
  if (epoch !== windows.epoch) return windows;
  return { ...windows, misses: openMs < rules.soonMs ? windows.misses + 1 : 0 };
}
