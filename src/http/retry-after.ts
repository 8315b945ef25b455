/** The longest wait that is obeyed unchanged, in ms. A longer wait pauses the run for an operator. */
export const maxThrottleMs = 3_600_000;

/**
 * The wait that the server asks for, in ms from now, without floor or cap; null if there is none or it can't be read. Reads `retry-after-ms` and
 * `x-ms-retry-after-ms`, which are finer, before `Retry-After` (RFC 9110 §10.2.3). A server and a proxy may each ask for a wait, in separate lines or
 * joined by a comma (RFC 9110 §5.3): the longest counts, which obeys both. Never throws.
 */
export function retryAfterMs(headers: HeaderFields, nowMs: number): number | null {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const asked = longest(splitHeader(headers, name).map((value) => wholeMs(decimal(value))));
    if (asked !== null) return asked;
  }
  return longest(readWaitsMs(headers, 'retry-after', nowMs));
}

/**
 * The waits in a header, in ms from now; null for one that can't be read. A wait is a number of seconds, also with a fraction, or a point in time:
 * Unix time in s (from 10^9 on) or in ms (from 10^12 on), an HTTP date or an ISO date. A point in time counts from the answer's own `Date`, so that a
 * wrong clock on either side does no harm. If `Date` is missing or malformed, it counts from `nowMs`, our clock in ms since 1970. A past time means 0.
 */
export function readWaitsMs(headers: HeaderFields, name: string, nowMs: number): (number | null)[] {
  const texts = splitHeader(headers, name);
  if (texts.length === 0) return [];
  const from = serverNowMs(headers, nowMs);
  return texts.map((text) => {
    const number = decimal(text);
    if (number !== null && number < 1e9) return wholeMs(number * 1_000);
    const until = number === null ? (httpDate(text, from) ?? isoDate(text)) : number < 1e12 ? number * 1_000 : number;
    return until === null ? null : wholeMs(Math.max(0, until - from));
  });
}

/** Each value in a header, as text. A comma after the name of a day belongs to a date. */
function splitHeader(headers: HeaderFields, name: string): string[] {
  return readHeaderValues(headers, name).flatMap((value) =>
    value.split(/(?<!(?:^|,)\s*[A-Z][a-z]+),/).map((one) => one.trim()),
  );
}

function longest(waits: (number | null)[]): number | null {
  const known = waits.filter((wait) => wait !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function decimal(text: string): number | null {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
}

/** A number too large for us is a very long wait, not none. */
function wholeMs(ms: number | null): number | null {
  return ms === null ? null : Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER);
}

function isoDate(text: string): number | null {
  const isDate = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const at = isDate ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}

/** The server's clock when it answered, in ms since 1970; `nowMs` if the answer has no date. */
function serverNowMs(headers: HeaderFields, nowMs: number): number {
  return httpDate(readHeaderValues(headers, 'date')[0] ?? '', nowMs) ?? nowMs;
}

/** The headers of an answer: names in lower case, with a list for a header that came several times. */
export type HeaderFields = Readonly<Record<string, string | string[] | undefined>>;

/** Every value of a header, trimmed, in the order in which they came. */
export function readHeaderValues(headers: HeaderFields, name: string): string[] {
  const value = headers[name];
  if (value === undefined) return [];
  return typeof value === 'string' ? [value.trim()] : value.map((one) => one.trim());
}

/**
 * Parses an HTTP date (RFC 9110 §5.6.7) in any of its three forms to ms since 1970, or null. `Date.parse` accepts far too much. Days and times that
 * don't exist give null; the weekday is not checked against the day. A year with two digits is at most 50 years after `nowMs`.
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

/** Parses a time. A second of 60 is a leap second, and counts as the next second. */
function timeOf(year: number, parts: Parts): number | null {
  const [, day, hour, minute, second] = parts;
  if (hour > 23 || minute > 59 || second > 60) return null;
  const midnight = utc(year, [parts[0], day, 0, 0, 0]);
  return midnight.getUTCDate() === day ? utc(year, parts).getTime() : null;
}

/** A UTC date for any year, as `Date.UTC` would take the year 50 for 1950. */
function utc(year: number, [monthIndex, day, hour, minute, second]: Parts): Date {
  const date = new Date(0);
  date.setUTCFullYear(year, monthIndex, day);
  date.setUTCHours(hour, minute, second);
  return date;
}
