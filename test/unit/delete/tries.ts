import type { SentRequest } from '../../../src/delete/connection-pool.ts';
import type { DeleteIdDeps } from '../../../src/delete/delete-id.ts';
import type { TargetLimits } from '../../../src/delete/target-limits.ts';
import { type Answer, verdictTable } from '../../../src/delete/verdict.ts';
import { Permits } from '../../../src/limiter/permits.ts';
import { isRefusal } from '../../../src/model/status.ts';
import { near } from '../../../src/redis/distance.ts';
import type { Token } from '../../../src/token/token.ts';

/** An answer with a status, as the server gives it to a request with the token `t`. */
export function status(code: number, headers: Record<string, string> = {}): Answer & { kind: 'status' } {
  return { kind: 'status', status: code, headers, body: '', authorization: 'Bearer t' };
}

export const timeout: Answer = { kind: 'maybe-sent', code: 'timeout', why: 'no answer in time' };
export const refusedConnection: Answer = { kind: 'not-sent', why: 'ECONNREFUSED' };

/** Limits of a target that takes everything, but for what is given. */
export function openLimits(odd: Partial<TargetLimits> = {}): TargetLimits {
  const permits = new Permits();
  permits.add({ firstMs: 0, gapMs: 0, count: 1_000_000, leasedAt: 0 }, 0, Number.POSITIVE_INFINITY);
  return {
    permits,
    distance: near,
    inFlightShare: 1_000,
    isBlocked: false,
    isHeld: false,
    throttledMs: 0,
    isStopped: false,
    isCircuitOpen: false,
    unreachableMs: 0,
    mayRetry: true,
    recordSent: () => 0,
    recordAnswer: () => {},
    enter: () => {},
    leave: () => {},
    ...odd,
  };
}

/** A request as the limits see it, but for what is given. */
export function sentRequest(odd: Partial<SentRequest> = {}): SentRequest {
  return { waitStatuses: new Set(), hasFailed: false, authorization: 'Bearer t', ...odd };
}

/** A token that never changes, but for what is given. */
export function givenToken(odd: Partial<Token> = {}): Token {
  return {
    authorization: () => 'Bearer t',
    sent: () => {},
    waiting: '',
    refused: () => 'again' as const,
    accepted: () => {},
    workedAtMs: () => Number.NEGATIVE_INFINITY,
    refreshes: 0,
    failedRefreshes: 0,
    lifeMs: null,
    source: 'test',
    start: async () => {},
    onChange: () => {},
    onRefused: () => {},
    close: async () => {},
    ...odd,
  };
}

/** The statuses with which an API refuses an id. */
export const everyRefusal = [...Array(600).keys()].filter(isRefusal);

/** What the tries of an id told those around them. */
export type Told = { retried: string[]; halts: string[]; waits: number[]; sent: number };

/** Tries whose further requests get these answers in turn; then nothing may leave any more. */
export function triesWith(
  answers: readonly Answer[] = [],
  odd: Partial<DeleteIdDeps> = {},
): { tries: DeleteIdDeps; told: Told } {
  const told: Told = { retried: [], halts: [], waits: [], sent: 0 };
  const left = [...answers];
  const send = async () => {
    told.sent++;
    return left.shift() ?? null;
  };
  const tries: DeleteIdDeps = {
    limits: openLimits(),
    token: givenToken(),
    verdicts: verdictTable,
    fits: () => true,
    silentMs: () => 0,
    retryDelaysMs: [5_000, 30_000],
    isNeverRepeated: false,
    unreachableTimeoutMs: 60_000,
    noteRefusal: async () => 0,
    random: () => 1,
    idText: () => 'v-7',
    send,
    ask: send,
    wait: async (ms) => {
      told.waits.push(ms);
      return true;
    },
    rest: async (ms) => {
      told.waits.push(ms);
      return true;
    },
    refusals: { moment: { accepted: 0, at: 0 }, haltOf: () => ({ code: 'all_absent', reason: 'none is there' }) },
    judge: async () => 'believed',
    retried: (reason) => void told.retried.push(reason),
    halt: (code, reason) => void told.halts.push(`${code}: ${reason}`),
    ...odd,
  };
  return { tries, told };
}
