/** Nobody waits longer without a person knowing. */
export const longestThrottleMs = 3_600_000;

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

/** The headers of an answer: names in lower case, a list where one came several times. */
export type HeaderFields = Readonly<Record<string, string | string[] | undefined>>;

/** Every value of that name, trimmed, in the order they came. */
export function valuesOf(headers: HeaderFields, name: string): string[] {
  const value = headers[name];
  if (value === undefined) return [];
  return typeof value === 'string' ? [value.trim()] : value.map((one) => one.trim());
}

/**
 * Milliseconds since 1970 of an HTTP date (RFC 9110 §5.6.7) in any of its three forms, or null. `Date.parse` takes far too much
 * for a date. Days and times that don't exist are refused; a weekday that doesn't fit the day is not looked at, since it says
 * nothing that the day doesn't. `nowMs` tells the century of a year with two digits: at most 50 years ahead.
 */
function httpDate(text: string, nowMs: number): number | null {
  const parts = (imfFixdate.exec(text) ?? rfc850.exec(text) ?? asctime.exec(text))?.groups;
  if (!parts) return null;
  const date: Parts = [months.indexOf(parts.month!), ...numbers(parts.day!, parts.h!, parts.m!, parts.s!)];
  const year = Number(parts.year);
  return timeOf(parts.year!.length === 2 ? fullYear(year, date, nowMs) : year, date);
}

type Parts = [month: number, day: number, hour: number, minute: number, second: number];

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const month = `(?<month>${months.join('|')})`;
const time = String.raw`(?<h>\d\d):(?<m>\d\d):(?<s>\d\d)`;
const shortDay = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const longDay = '(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)';
const imfFixdate = new RegExp(String.raw`^${shortDay}, (?<day>\d\d) ${month} (?<year>\d{4}) ${time} GMT$`);
const rfc850 = new RegExp(String.raw`^${longDay}, (?<day>\d\d)-${month}-(?<year>\d\d) ${time} GMT$`);
const asctime = new RegExp(String.raw`^${shortDay} ${month} (?<day>[ \d]\d) ${time} (?<year>\d{4})$`);

function numbers(day: string, hour: string, minute: string, second: string): [number, number, number, number] {
  return [Number(day), Number(hour), Number(minute), Number(second)];
}

function fullYear(twoDigits: number, parts: Parts, nowMs: number): number {
  const latest = new Date(nowMs);
  latest.setUTCFullYear(latest.getUTCFullYear() + 50);
  const year = latest.getUTCFullYear() - (latest.getUTCFullYear() % 100) + twoDigits;
  return utc(year, parts).getTime() > latest.getTime() ? year - 100 : year;
}

/** A second of 60 is a leap second; it counts as the next one. */
function timeOf(year: number, parts: Parts): number | null {
  const [, day, hour, minute, second] = parts;
  if (hour > 23 || minute > 59 || second > 60) return null;
  const midnight = utc(year, [parts[0], day, 0, 0, 0]);
  return midnight.getUTCDate() === day ? utc(year, parts).getTime() : null;
}

/** `Date.UTC` would take the year 50 for 1950. */
function utc(year: number, [monthIndex, day, hour, minute, second]: Parts): Date {
  const date = new Date(0);
  date.setUTCFullYear(year, monthIndex, day);
  date.setUTCHours(hour, minute, second);
  return date;
}
