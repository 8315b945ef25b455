import { readRateAdvice } from '../http/rate-headers.ts';
import { maxThrottleMs, readHeaderValues, retryAfterMs } from '../http/retry-after.ts';
import type { Signal } from '../limiter/outage.ts';
import type { TargetLimiter } from '../limiter/target-limiter.ts';
import { findStatusFacts, isThrottling } from '../model/status.ts';
import { describeConnectionError } from '../system-errors.ts';
import type { Token } from '../token/token.ts';
import type { PoolLimits } from './connection-pool.ts';
import { namedBy, namesLimit } from './named-codes.ts';
import { UsedUpLimit } from './used-up-limit.ts';
import { type Answer, noContent } from './verdict.ts';

/** The view that deleting has of its target's limiter. */
export type TargetLimits = PoolLimits & {
  /** Whether the target is throttled or stopped. A request that has its header needs no other token. */
  readonly isHeld: boolean;
  /** The remaining wait that the server asked for, in ms; 0 = requests may be sent. */
  readonly throttledMs: number;
  /** Whether a stop is in force. It lasts until an operator lifts it. */
  readonly isStopped: boolean;
  /** Whether the circuit is open: a failure now is not counted as an attempt of an id. */
  readonly isCircuitOpen: boolean;
  /** The time for which the target could not be reached, in ms; 0 = it can be reached. */
  readonly unreachableMs: number;
  /** Whether failed ids may be retried at once. While many fail, they are retried in a later pass, so that retries don't add load. */
  readonly mayRetry: boolean;
  /** Called before and after a pass over a chunk: the limiter leases permits only in between. */
  enter(): void;
  leave(): void;
};

type TargetLimitsDeps = {
  token: Token;
  /** ms since 1970. */
  now: () => number;
  /** Called when the server asks for a wait longer than `maxThrottleMs`; `reason` is for people. */
  onLongThrottle(reason: string): void;
  /** Called when an answer that means "not now" has a Retry-After that can't be read. `value`: as the server sent it, at most 100 characters. */
  onUnreadableWait?(value: string): void;
};

/** Reports answers to the limiter and the token, and asks them what may be sent. */
export function targetLimits(limiter: TargetLimiter, deps: TargetLimitsDeps): TargetLimits {
  const { token, now, onLongThrottle, onUnreadableWait = () => {} } = deps;
  const usedUp = new UsedUpLimit();
  return {
    permits: limiter.permits,
    distance: limiter.distance,
    get inFlightShare() {
      return limiter.inFlightShare;
    },
    get isBlocked() {
      return limiter.isBlocked || token.waiting !== '';
    },
    get isHeld() {
      return limiter.isBlocked;
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
    recordSent: (nowMs, authorization) => {
      token.sent(authorization);
      return limiter.recordSent(nowMs);
    },
    recordAnswer: ({ epoch, wasClose, sentAt }, answer, ms, { waitStatuses, hasFailed, authorization }) => {
      const signal = toSignal(answer, waitStatuses);
      limiter.permits.recordAnswer(wasClose, signal === 'refused');
      if (signal === 'accepted' && usedUp.isWatched) usedUp.accepted(now() - ms);
      if (answer === noContent) {
        limiter.observe(epoch, 'accepted', ms, '');
        token.accepted(authorization, sentAt);
        return;
      }
      const isLifted = limiter.isReleased(epoch);
      const advice = answer.kind === 'status' && !isLifted ? readRateAdvice(answer.headers, now()) : null;
      const isUsedUp = advice?.remaining === 0 && usedUp.announce(now(), advice.resetMs);
      const resetMs = isUsedUp ? advice.resetMs : null;
      const throttle =
        answer.kind === 'status' && !isLifted
          ? requestedThrottle(answer, { waitStatuses, resetMs, now: now(), onUnreadableWait })
          : null;
      if (throttle !== null) limiter.throttleFor(throttle.ms, throttle.why);
      if (throttle?.isTooLong) onLongThrottle(throttle.why);
      if (advice !== null) limiter.announce(advice);
      limiter.observe(
        epoch,
        throttle !== null && throttle.ms > 0 ? throttle.signal : signal,
        ms,
        explainAnswer(answer),
        hasFailed,
      );
      // A gateway may refuse because of the rate, or fail, before any server checks the token.
      if (signal === 'accepted') token.accepted(authorization, sentAt);
    },
  };
}

type ThrottleContext = {
  waitStatuses: ReadonlySet<number>;
  /** The time until the limit is reset, if it is used up; null = not known. */
  resetMs: number | null;
  now: number;
  onUnreadableWait(value: string): void;
};

/**
 * The wait that an answer asks for; null = none. Retry-After is obeyed on any answer that means "not now" (RFC 9110 §10.2.3), for at most an hour. A
 * refusal without it can say that the limit is used up, and when it is reset.
 */
function requestedThrottle(
  answer: Answer & { kind: 'status' },
  { waitStatuses, resetMs, now, onUnreadableWait }: ThrottleContext,
) {
  const { status, headers } = answer;
  const isThrottled = isThrottling(status) || waitStatuses.has(status) || namesLimit(answer);
  if (!isThrottled && !findStatusFacts(status).mayAskToWait) return null;
  const signal = isThrottled ? ('throttled' as const) : ('unavailable' as const);
  const ms = retryAfterMs(headers, now);
  if (ms !== null) {
    const why = `the server answered ${status} and sent Retry-After ${Math.ceil(ms / 1_000)}`;
    return { ms: Math.min(ms, maxThrottleMs), why, signal, isTooLong: ms > maxThrottleMs };
  }
  const [said] = readHeaderValues(headers, 'retry-after');
  if (said !== undefined) onUnreadableWait(said.slice(0, 100));
  if (!isThrottled || resetMs === null) return null;
  const why = `the server answered ${status} and said that its limit is reset in ${Math.ceil(resetMs / 1_000)} s`;
  return { ms: resetMs, why, signal, isTooLong: false };
}

/** Why the target as a whole is in trouble, according to one answer. */
export function explainAnswer(answer: Answer): string {
  if (answer.kind === 'not-sent') return `the API cannot be reached (${describeConnectionError(answer.why)})`;
  if (answer.kind === 'maybe-sent' && answer.code === 'timeout') return 'the API gives no answers in time';
  if (answer.kind === 'maybe-sent') return `the API gives no answers (${describeConnectionError(answer.why)})`;
  return `the API answers ${answer.status} to everything`;
}

/** What an answer says about the target as a whole, whatever it means for its id. `waitStatuses`: the statuses that mean "not now". */
export function toSignal(answer: Answer, waitStatuses: ReadonlySet<number>): Signal {
  if (answer === noContent) return 'accepted';
  if (answer.kind === 'not-sent') return 'unreachable';
  if (answer.kind === 'maybe-sent') return 'lost';
  if (waitStatuses.has(answer.status)) return 'refused';
  const named = namedBy(answer);
  if (named !== null) return named === 'limit' ? 'refused' : 'nothing';
  return findStatusFacts(answer.status).signal;
}
