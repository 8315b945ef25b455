import { throttlingStatus } from '../model/status.ts';
import type { Fault, RetryAfterForm } from './fault-kinds.ts';

/** A limit that nobody wrote down; what is above it gets a 429. */
export type RateLimit = {
  perSecond: number;
  burst?: number | undefined; // of the bucket that gains `perSecond`; by default what 100 ms bring
  windowMs?: number | undefined; // no bucket: in each window of this length as many requests as the rate brings, at any moment of it
  retryAfter?: RetryAfterForm | undefined; // the header of the 429
  retryAfterSeconds?: number | undefined; // what it asks for; by default until there is room again
  headers?: RateHeaderKind | undefined; // what every answer to a delete tells of the limit
};

/** The limit at work. A request that is refused takes nothing from it. */
export type Limiter = {
  take(): boolean; // whether a request is let through
  remaining(): number;
  refusal(): Fault;
  headers(): Record<string, string> | null;
};

/** `remaining`: how much is left at first; by default everything. `now`: ms since 1970. Throws an Error for a rate or a window of 0. */
export function startLimit(rate: RateLimit, now: () => number, remaining = Number.POSITIVE_INFINITY): Limiter {
  if (!(rate.perSecond > 0 && (rate.windowMs ?? 1) > 0)) throw new Error('expected a rate and a window above 0');
  const store = rate.windowMs === undefined ? openBucket(rate, now, remaining) : openWindow(rate, now, remaining);
  const { retryAfter: form, headers: kind } = rate;
  return {
    take: () => store.take(),
    remaining: () => store.standing().remaining,
    refusal() {
      const seconds = rate.retryAfterSeconds ?? Math.ceil(store.roomInMs() / 1_000);
      return {
        ending: 'status',
        executes: false,
        status: throttlingStatus,
        retryAfter: form ? { form, seconds } : null,
      };
    },
    headers: () => (kind ? formatRateHeaders(kind, store.standing(), now()) : null),
  };
}

type LimitStore = { take(): boolean; standing(): LimitState; roomInMs(): number };

function openBucket({ perSecond, burst: given }: RateLimit, now: () => number, remaining: number): LimitStore {
  const burst = given ?? Math.max(1, perSecond / 10);
  let filled = Math.min(burst, remaining);
  let at = now();
  const fill = () => {
    const moment = now();
    filled = Math.min(burst, filled + (Math.max(0, moment - at) * perSecond) / 1_000);
    at = moment;
  };
  return {
    take() {
      fill();
      if (filled < 1) return false;
      filled -= 1;
      return true;
    },
    standing() {
      fill();
      const msPerRequest = 1_000 / perSecond;
      return {
        ...{ quota: burst, windowMs: burst * msPerRequest },
        ...{ remaining: filled, resetMs: (burst - filled) * msPerRequest },
      };
    },
    roomInMs: () => 1_000 / perSecond,
  };
}

/** Windows begin at whole multiples of their length, whoever asks. */
function openWindow({ perSecond, windowMs = 1_000 }: RateLimit, now: () => number, remaining: number): LimitStore {
  const quota = Math.max(1, Math.floor((perSecond * windowMs) / 1_000));
  let window = Math.floor(now() / windowMs);
  let used = quota - Math.min(quota, remaining);
  const turn = () => {
    const current = Math.floor(now() / windowMs);
    if (current !== window) used = 0;
    window = current;
  };
  const resetMs = () => windowMs - (now() % windowMs);
  return {
    take() {
      turn();
      if (used >= quota) return false;
      used += 1;
      return true;
    },
    standing() {
      turn();
      return { quota, windowMs, remaining: quota - used, resetMs: resetMs() };
    },
    roomInMs: resetMs,
  };
}

/** How a server may tell of its limit: as the newest draft does, as drafts 07 and 06 did, or by custom, with three kinds of reset. */
export const rateHeaderKinds = [
  'ratelimit',
  'ratelimit-07',
  'ratelimit-06',
  'x-ratelimit-delta',
  'x-ratelimit-epoch',
  'x-ratelimit-epoch-ms',
] as const;
export type RateHeaderKind = (typeof rateHeaderKinds)[number];

/** A limit as it stands: so many of `quota` requests remain, and in `resetMs` it counts afresh. */
type LimitState = { quota: number; windowMs: number; remaining: number; resetMs: number };

/** The headers that tell of it. Seconds are rounded up: obeying them never comes too early. */
function formatRateHeaders(kind: RateHeaderKind, standing: LimitState, nowMs: number): Record<string, string> {
  const [quota, remaining] = [Math.floor(standing.quota), Math.floor(standing.remaining)];
  const [window, reset] = [Math.ceil(standing.windowMs / 1_000), Math.ceil(standing.resetMs / 1_000)];
  switch (kind) {
    case 'ratelimit':
      return {
        'ratelimit-policy': `"default";q=${quota};w=${window}`,
        ratelimit: `"default";r=${remaining};t=${reset}`,
      };
    case 'ratelimit-07':
      return {
        'ratelimit-policy': `${quota};w=${window}`,
        ratelimit: `limit=${quota}, remaining=${remaining}, reset=${reset}`,
      };
    case 'ratelimit-06':
      return threeHeaders('ratelimit', `${quota}, ${quota};w=${window}`, remaining, reset);
    case 'x-ratelimit-delta':
      return threeHeaders('x-ratelimit', quota, remaining, reset);
    case 'x-ratelimit-epoch':
      return threeHeaders('x-ratelimit', quota, remaining, Math.ceil((nowMs + standing.resetMs) / 1_000));
    case 'x-ratelimit-epoch-ms':
      return threeHeaders('x-ratelimit', quota, remaining, Math.ceil(nowMs + standing.resetMs));
  }
}

function threeHeaders(prefix: string, limit: number | string, remaining: number, reset: number) {
  return {
    [`${prefix}-limit`]: String(limit),
    [`${prefix}-remaining`]: String(remaining),
    [`${prefix}-reset`]: String(reset),
  };
}
