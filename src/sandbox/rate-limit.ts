import { throttlingStatus } from '../model/status.ts';
import type { Fault, RetryAfterForm } from './fault-kinds.ts';

/** A rate limit; requests above it get a 429. */
export type RateLimit = {
  perSecond: number;
  burst?: number | undefined; // size of the token bucket; by default 100 ms worth of the rate
  windowMs?: number | undefined; // fixed windows of this length instead of a bucket
  retryAfter?: RetryAfterForm | undefined; // the header of the 429
  retryAfterSeconds?: number | undefined; // the wait in that header; by default until a request is allowed again
  headers?: RateHeaderKind | undefined; // the rate headers of every answer to a delete
};

/** The headers in which servers report a limit: those of the newest draft, of drafts 07 and 06, and the common ones with three kinds of reset. */
type RateHeaderKind =
  | 'ratelimit'
  | 'ratelimit-07'
  | 'ratelimit-06'
  | 'x-ratelimit-delta'
  | 'x-ratelimit-epoch'
  | 'x-ratelimit-epoch-ms';

/** The state of a limit. A request that gets a 429 takes nothing from it. */
export type Limiter = {
  take(): boolean; // whether a request is allowed
  remaining(): number;
  refusal(): Fault;
  headers(): Record<string, string> | null;
};

/** Starts a limit. `remaining`: requests left at first, by default all. `now`: ms since 1970. Throws an Error for a rate or window of 0. */
export function startLimit(rate: RateLimit, now: () => number, remaining = Number.POSITIVE_INFINITY): Limiter {
  if (!(rate.perSecond > 0 && (rate.windowMs ?? 1) > 0)) throw new Error('expected a rate and a window above 0');
  const store = rate.windowMs === undefined ? openBucket(rate, now, remaining) : openWindow(rate, now, remaining);
  const { retryAfter: form, headers: kind } = rate;
  return {
    take: () => store.take(),
    remaining: () => store.state().remaining,
    refusal() {
      const seconds = rate.retryAfterSeconds ?? Math.ceil(store.roomInMs() / 1_000);
      return {
        ending: 'status',
        executes: false,
        status: throttlingStatus,
        retryAfter: form ? { form, seconds } : null,
      };
    },
    headers: () => (kind ? formatRateHeaders(kind, store.state(), now()) : null),
  };
}

type LimitStore = { take(): boolean; state(): LimitState; roomInMs(): number };

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
    state() {
      fill();
      const msPerRequest = 1_000 / perSecond;
      return {
        quota: burst,
        windowMs: burst * msPerRequest,
        remaining: filled,
        resetMs: (burst - filled) * msPerRequest,
      };
    },
    roomInMs: () => 1_000 / perSecond,
  };
}

/** A limit in windows, which begin at multiples of their length. */
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
    state() {
      turn();
      return { quota, windowMs, remaining: quota - used, resetMs: resetMs() };
    },
    roomInMs: resetMs,
  };
}

/** The current state of a limit: `remaining` of `quota` requests are left, and in `resetMs` all are. */
type LimitState = { quota: number; windowMs: number; remaining: number; resetMs: number };

/** The headers of a limit. Seconds are rounded up, so that a client that obeys them is never too early. */
function formatRateHeaders(kind: RateHeaderKind, state: LimitState, nowMs: number): Record<string, string> {
  const [quota, remaining] = [Math.floor(state.quota), Math.floor(state.remaining)];
  const [window, reset] = [Math.ceil(state.windowMs / 1_000), Math.ceil(state.resetMs / 1_000)];
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
      return threeHeaders('x-ratelimit', quota, remaining, Math.ceil((nowMs + state.resetMs) / 1_000));
    case 'x-ratelimit-epoch-ms':
      return threeHeaders('x-ratelimit', quota, remaining, Math.ceil(nowMs + state.resetMs));
  }
}

function threeHeaders(prefix: string, limit: number | string, remaining: number, reset: number) {
  return {
    [`${prefix}-limit`]: String(limit),
    [`${prefix}-remaining`]: String(remaining),
    [`${prefix}-reset`]: String(reset),
  };
}
