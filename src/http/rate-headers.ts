import { parseDictionary, parseList, Token } from 'structured-headers';
import { type HeaderFields, maxThrottleMs, readHeaderValues, readWaitsMs } from './retry-after.ts';

/** A server's statement about its rate limit before it throttles. */
type Advice = {
  remaining: number; // requests left in the window
  resetMs: number; // time that the window still lasts, from now
  quota: number | null; // requests per whole window; null = not stated
  perSecond: number; // the rate that spreads the remaining requests evenly over the rest of the window
};

/** Whether an answer has a header that `readRateAdvice` reads. */
export function hasAdvice(headers: HeaderFields): boolean {
  return (
    headers.ratelimit !== undefined ||
    headers['ratelimit-policy'] !== undefined ||
    headers['ratelimit-remaining'] !== undefined ||
    headers['x-ratelimit-remaining'] !== undefined ||
    headers['x-rate-limit-remaining'] !== undefined
  );
}

/**
 * The strictest advice of an answer's headers; null if none can be read, or if its window is longer than an hour. Reads `RateLimit` with
 * `RateLimit-Policy` (structured fields, also as in draft 07), `RateLimit-Remaining` and `-Reset` of the earlier drafts, `X-RateLimit-*` and
 * `X-Rate-Limit-*`; the first of these families that can be read counts. `nowMs`: our clock in ms since 1970, used for a reset at a point in time in
 * an answer without a `Date`. Never throws. Called for nearly every answer; without such a header it costs a few look-ups.
 */
export function readRateAdvice(headers: HeaderFields, nowMs: number): Advice | null {
  if (headers.ratelimit !== undefined || headers['ratelimit-policy'] !== undefined) {
    const advice = ofFields(headers);
    if (advice !== null) return advice;
  }
  if (headers['ratelimit-remaining'] !== undefined) {
    const advice = ofNumbers(headers, 'ratelimit', nowMs);
    if (advice !== null) return advice;
  }
  if (headers['x-ratelimit-remaining'] !== undefined) {
    const advice = ofNumbers(headers, 'x-ratelimit', nowMs);
    if (advice !== null) return advice;
  }
  return headers['x-rate-limit-remaining'] === undefined ? null : ofNumbers(headers, 'x-rate-limit', nowMs);
}

function adviceFor(remaining: unknown, resetMs: unknown, quota: unknown): Advice[] {
  if (!isAmount(remaining) || !isAmount(resetMs) || resetMs === 0 || resetMs > maxThrottleMs) return [];
  return [{ remaining, resetMs, quota: isAmount(quota) ? quota : null, perSecond: (remaining * 1_000) / resetMs }];
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function strictest(all: Advice[]): Advice | null {
  return all.reduce<Advice | null>((least, one) => (least && least.perSecond <= one.perSecond ? least : one), null);
}

/** Reads `RateLimit: "hourly";r=50;t=30` with `RateLimit-Policy: "hourly";q=100;w=3600`, or draft 07's `limit=100, remaining=50, reset=30`. */
function ofFields(headers: HeaderFields): Advice | null {
  const limits = readNamed(headers, 'ratelimit');
  if (limits === null) return ofDictionary(headers);
  const policies = readNamed(headers, 'ratelimit-policy') ?? [];
  const counted = policies.filter(({ parameters }) => isOfRequests(parameters.get('qu')));
  return strictest([
    ...limits.flatMap(({ name, parameters }) => {
      const policy = policies.find((one) => one.name === name);
      if (policy && !counted.includes(policy)) return [];
      // Without a reset, the window lasts at most for its whole length.
      const seconds = parameters.get('t') ?? policy?.parameters.get('w');
      return adviceFor(parameters.get('r'), inMs(seconds), policy?.parameters.get('q'));
    }),
    // A policy without a current state still has a quota for each window.
    ...counted
      .filter(({ name }) => limits.every((limit) => limit.name !== name))
      .flatMap(({ parameters }) => adviceFor(parameters.get('q'), inMs(parameters.get('w')), parameters.get('q'))),
  ]);
}

type Named = { name: string; parameters: Map<string, unknown> };

/** The members of the list in a header that are named by a string or a token; null if the header is not a list. */
function readNamed(headers: HeaderFields, header: string): Named[] | null {
  try {
    return parseList(readHeaderValues(headers, header).join(', ')).flatMap(([value, parameters]) =>
      value instanceof Token || typeof value === 'string' ? [{ name: String(value), parameters }] : [],
    );
  } catch {
    return null;
  }
}

/** Whether a quota counts requests, not bytes or concurrent requests. */
function isOfRequests(unit: unknown): boolean {
  return unit === undefined || String(unit) === 'requests';
}

function inMs(seconds: unknown): unknown {
  return typeof seconds === 'number' ? seconds * 1_000 : undefined;
}

function ofDictionary(headers: HeaderFields): Advice | null {
  try {
    const fields = parseDictionary(readHeaderValues(headers, 'ratelimit').join(', '));
    const [remaining, reset, limit] = ['remaining', 'reset', 'limit'].map((name) => fields.get(name)?.[0]);
    return strictest(adviceFor(remaining, inMs(reset), limit));
  } catch {
    return null;
  }
}

/** Reads two headers of plain numbers. If several servers on the route added a pair each, the strictest pair counts. */
function ofNumbers(headers: HeaderFields, prefix: string, nowMs: number): Advice | null {
  const remaining = readNumbers(headers, `${prefix}-remaining`);
  const resets = readWaitsMs(headers, `${prefix}-reset`, nowMs); // which no standard defines
  if (remaining.length !== resets.length) return null;
  const quotas = headers[`${prefix}-limit`] === undefined ? [] : readNumbers(headers, `${prefix}-limit`);
  return strictest(remaining.flatMap((count, i) => adviceFor(count, resets[i], quotas[i])));
}

function readNumbers(headers: HeaderFields, name: string): number[] {
  const texts = readHeaderValues(headers, name).flatMap((value) => value.split(','));
  return texts.map((text) => (/^\s*\d{1,15}(\.\d+)?\s*$/.test(text) ? Number(text) : Number.NaN));
}
