import { adviceOf } from '../http/rate-headers.ts';
import { longestThrottleMs, retryAfterMs } from '../http/retry-after.ts';
import type { Signal } from '../limiter/outage.ts';
import type { TargetLimiter } from '../limiter/target-limiter.ts';
import { classOf, factsOf, isThrottling } from '../model/status.ts';
import { describeConnectionError } from '../system-errors.ts';
import type { Token } from '../token/token.ts';
import type { PoolLimits } from './connection-pool.ts';
import { type Answer, noContent } from './verdict.ts';

/** What deleting reads from the limiter of its target. */
export type TargetLimits = PoolLimits & {
  /** For how long the server asked for nothing to be sent, in ms; 0 = requests may be sent. */
  readonly throttledMs: number;
  /** Whether nothing may be sent until an operator lifts it. */
  readonly isStopped: boolean;
  /** The circuit is open: a failure now is not counted as an attempt of an id. */
  readonly isCircuitOpen: boolean;
  /** How long the target could not be reached, in ms; 0 = it can. */
  readonly unreachableMs: number;
  /** Whether ids in trouble may be tried again at once. Where much fails they come later, so that retries don't add to it. */
  readonly mayRetry: boolean;
  /** Around the work on a chunk. */
  enter(): void;
  leave(): void;
};

type TargetLimitsDeps = {
  token: Token;
  /** ms since 1970. */
  now: () => number;
  /** The server wants us to wait for longer than we do by ourselves; with the reason in words. */
  onLongThrottle(reason: string): void;
};

export function targetLimits(
  limiter: TargetLimiter,
  { token, now, onLongThrottle: tooLong }: TargetLimitsDeps,
): TargetLimits {
  return {
    permits: limiter.permits,
    get inFlightShare() {
      return limiter.inFlightShare;
    },
    get isBlocked() {
      return limiter.isBlocked || token.waiting !== '';
    },
    get throttledMs() {
      return limiter.throttledMs;
    },
    get isStopped() {
      return limiter.stopped !== null;
    },
    get isCircuitOpen() {
      return limiter.isCircuitOpen;
    },
    get unreachableMs() {
      return limiter.outageMs('unreachable');
    },
    get mayRetry() {
      return limiter.known?.budget !== 0;
    },
    enter: () => limiter.enter(),
    leave: () => limiter.leave(),
    recordSent: (nowMs) => limiter.recordSent(nowMs),
    recordAnswer: (epoch, answer, ms, waitStatuses) => {
      const isLifted = limiter.isReleased(epoch);
      const throttle = answer.kind === 'status' && !isLifted ? askedToWait(answer, waitStatuses, now()) : null;
      if (throttle !== null) limiter.throttleFor(throttle.ms, throttle.why);
      if (throttle?.isTooLong) tooLong(throttle.why);
      if (answer.kind === 'status' && !isLifted) applyRateHeaders(answer, limiter, now());
      limiter.observe(
        epoch,
        throttle !== null && throttle.ms > 0 ? throttle.signal : signalOf(answer, waitStatuses),
        ms,
        whyOf(answer),
      );
      if (answer.kind === 'status' && classOf(answer.status) !== 'unauthorized') token.accepted();
    },
  };
}

/** What Retry-After of an answer asks for, on any answer that means "not now" (RFC 9110 §10.2.3). At most an hour of it is obeyed. */
function askedToWait({ status, headers }: Answer & { kind: 'status' }, waitStatuses: ReadonlySet<number>, now: number) {
  const isRefusal = isThrottling(status) || waitStatuses.has(status);
  if (!isRefusal && !factsOf(status).mayAskToWait) return null;
  const ms = retryAfterMs(headers, now);
  if (ms === null) return null;
  const why = `the server answered ${status} and sent Retry-After ${Math.ceil(ms / 1_000)}`;
  const signal = isRefusal ? ('throttled' as const) : ('unavailable' as const);
  return { ms: Math.min(ms, longestThrottleMs), why, signal, isTooLong: ms > longestThrottleMs };
}

const shortestAdviceMs = 2_000;

/** Slows down before anything is refused. Resets of a second or two are rounded so much that they say nothing. */
function applyRateHeaders({ status, headers }: Answer & { kind: 'status' }, limiter: TargetLimiter, now: number): void {
  const advice = adviceOf(headers, now);
  if (advice === null || advice.resetMs < shortestAdviceMs) return;
  if (advice.remaining > 0) limiter.advise(advice.perSecond, advice.resetMs);
  else limiter.throttleFor(advice.resetMs, `the server answered ${status} and says that nothing is left of its limit`);
}

function whyOf(answer: Answer): string {
  if (answer.kind === 'not-sent') return `the API cannot be reached (${describeConnectionError(answer.why)})`;
  if (answer.kind === 'maybe-sent') return `the API gives no answers (${answer.code})`;
  return `the API answers ${answer.status} to everything`;
}

/** What an answer tells about the target as a whole, whatever it means for its id. `waits`: statuses by which it says "not now". */
function signalOf(answer: Answer, waitStatuses: ReadonlySet<number>): Signal {
  if (answer === noContent) return 'accepted';
  if (answer.kind === 'not-sent') return 'unreachable';
  if (answer.kind === 'maybe-sent') return 'lost';
  return waitStatuses.has(answer.status) ? 'refused' : factsOf(answer.status).signal;
}
