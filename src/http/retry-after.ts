import { type HeaderFields, valuesOf } from '../limiter/header-fields.ts';
import { httpDate } from '../limiter/http-date.ts';

/** Nobody waits longer without a person knowing. */
export const longestHoldMs = 3_600_000;

/**
 * How long the server asks to wait, in ms from now, without floor or cap, or null if it doesn't say or nobody can read it. First
 * `retry-after-ms` and `x-ms-retry-after-ms`, which are finer, then `Retry-After` (RFC 9110 §10.2.3) in seconds, also with a
 * fraction, or as a date. A date counts from the answer's own `Date`, so that a wrong clock on either side does no harm; where that
 * is missing or malformed it counts from `nowMs`, our clock in ms since 1970. A date that is over means 0. A server and a proxy may
 * have asked for a wait each, in lines of their own or joined by a comma (RFC 9110 §5.3): the longest counts, which obeys both.
 */
export function retryAfterMs(headers: HeaderFields, nowMs: number): number | null {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const asked = longest(askedIn(headers, name).map((value) => decimal(value, 1)));
    if (asked !== null) return asked;
  }
  return longest(
    askedIn(headers, 'retry-after').map((value) => decimal(value, 1_000) ?? untilDate(value, headers, nowMs)),
  );
}

/** Each wait of such a header. A comma behind the name of a day belongs to a date. */
function askedIn(headers: HeaderFields, name: string): string[] {
  return valuesOf(headers, name).flatMap((value) =>
    value.split(/(?<!(?:^|,)\s*[A-Z][a-z]+),/).map((one) => one.trim()),
  );
}

function longest(waits: (number | null)[]): number | null {
  const known = waits.filter((wait) => wait !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** A number too long for us is a very long wait, not none. */
function decimal(text: string, unitMs: number): number | null {
  return /^\d+(\.\d+)?$/.test(text) ? Math.min(Math.ceil(Number(text) * unitMs), Number.MAX_SAFE_INTEGER) : null;
}

function untilDate(text: string, headers: HeaderFields, nowMs: number): number | null {
  const from = serverNowMs(headers, nowMs);
  const until = httpDate(text, from);
  return until === null ? null : Math.max(0, until - from);
}

/** What the server's clock said when it answered, in ms since 1970, or `nowMs` where it doesn't say. */
export function serverNowMs(headers: HeaderFields, nowMs: number): number {
  return httpDate(valuesOf(headers, 'date')[0] ?? '', nowMs) ?? nowMs;
}
