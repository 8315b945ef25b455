/**
 * Milliseconds since 1970 of an HTTP date (RFC 9110 §5.6.7) in any of its three forms, or null. `Date.parse` takes far too much
 * for a date. Days and times that don't exist are refused; a weekday that doesn't fit the day is not looked at, since it says
 * nothing that the day doesn't. `nowMs` tells the century of a year with two digits: at most 50 years ahead.
 */
export function httpDate(text: string, nowMs: number): number | null {
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
