import { adviceOf } from '../http/rate-headers.ts';
import { longestHoldMs, retryAfterMs } from '../http/retry-after.ts';
import type { Signal } from '../limiter/outage.ts';
import type { TargetLimiter } from '../limiter/target-limiter.ts';
import { connectionWords } from '../system-words.ts';
import type { Token } from '../token/token.ts';
import type { LaneLimits } from './lanes.ts';
import { type Answer, noContent } from './verdict.ts';

/** What deleting asks the limiter of its target. */
export type TargetLimits = LaneLimits & {
  /** How long nothing may leave, in ms, because the server asked for it; 0 = it may. */
  readonly holdMs: number;
  /** Whether nothing may leave until an operator lifts it. */
  readonly isStopped: boolean;
  /** Nothing gets through: what fails now is the outage's doing, and costs no id an attempt. */
  readonly isOut: boolean;
  /** How long the target could not be reached, in ms; 0 = it can. */
  readonly unreachableMs: number;
  /** Whether ids in trouble may be tried again at once. Where much fails they come later, so that retries don't add to it. */
  readonly mayRetry: boolean;
  /** Around the work on a chunk. */
  enter(): void;
  leave(): void;
};

type Around = {
  token: Token;
  /** ms since 1970. */
  now: () => number;
  /** The server wants us to wait for longer than we do by ourselves; with the reason in words. */
  tooLong(reason: string): void;
};

export function targetLimits(limiter: TargetLimiter, { token, now, tooLong }: Around): TargetLimits {
  return {
    permits: limiter.permits,
    get inFlightShare() {
      return limiter.inFlightShare;
    },
    get isHeld() {
      return limiter.isHeld || token.waiting !== '';
    },
    get holdMs() {
      return limiter.holdMs;
    },
    get isStopped() {
      return limiter.stopped !== null;
    },
    get isOut() {
      return limiter.isOut;
    },
    get unreachableMs() {
      return limiter.outageMs('unreachable');
    },
    get mayRetry() {
      return limiter.known?.budget !== 0;
    },
    enter: () => limiter.enter(),
    leave: () => limiter.leave(),
    sent: (nowMs) => limiter.sent(nowMs),
    answered: (epoch, answer, ms, waits) => {
      const isLifted = limiter.isReleased(epoch);
      const wait = answer.kind === 'status' && !isLifted ? askedToWait(answer, waits, now()) : null;
      if (wait !== null) limiter.holdFor(wait.ms, wait.why);
      if (wait?.isTooLong) tooLong(wait.why);
      if (answer.kind === 'status' && !isLifted) heed(answer, limiter, now());
      limiter.see(epoch, wait !== null && wait.ms > 0 ? wait.signal : signalOf(answer, waits), ms, whyOf(answer));
      if (answer.kind === 'status' && answer.status !== 401) token.accepted();
    },
  };
}

/** What Retry-After of an answer asks for, on any answer that means "not now" (RFC 9110 §10.2.3). At most an hour of it is obeyed. */
function askedToWait({ status, headers }: Answer & { kind: 'status' }, waits: ReadonlySet<number>, now: number) {
  const isRefusal = status === 429 || waits.has(status);
  if (!isRefusal && status < 500) return null;
  const ms = retryAfterMs(headers, now);
  if (ms === null) return null;
  const why = `the server answered ${status} and sent Retry-After ${Math.ceil(ms / 1_000)}`;
  const signal = isRefusal ? ('told' as const) : ('closed' as const);
  return { ms: Math.min(ms, longestHoldMs), why, signal, isTooLong: ms > longestHoldMs };
}

const shortestAdviceMs = 2_000;

/** Slows down before anything is refused. Resets of a second or two are rounded so much that they say nothing. */
function heed({ status, headers }: Answer & { kind: 'status' }, limiter: TargetLimiter, now: number): void {
  const advice = adviceOf(headers, now);
  if (advice === null || advice.resetMs < shortestAdviceMs) return;
  if (advice.remaining > 0) limiter.advise(advice.perSecond, advice.resetMs);
  else limiter.holdFor(advice.resetMs, `the server answered ${status} and says that nothing is left of its limit`);
}

function whyOf(answer: Answer): string {
  if (answer.kind === 'not-sent') return `the API cannot be reached (${connectionWords(answer.why)})`;
  if (answer.kind === 'maybe-sent') return `the API gives no answers (${answer.code})`;
  return `the API answers ${answer.status} to everything`;
}

/** What an answer tells about the target as a whole, whatever it means for its id. `waits`: statuses by which it says "not now". */
function signalOf(answer: Answer, waits: ReadonlySet<number>): Signal {
  if (answer === noContent) return 'accepted';
  if (answer.kind === 'not-sent') return 'unreachable';
  if (answer.kind === 'maybe-sent') return 'lost';
  if (answer.status === 429 || waits.has(answer.status)) return 'refused';
  if (answer.status === 401) return 'nothing'; // about the token, not about the load
  if (answer.status === 408 || (answer.status >= 500 && answer.status !== 501 && answer.status !== 505))
    return 'trouble';
  return 'accepted';
}
