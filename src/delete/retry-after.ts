import type { AnswerHeaders } from './answer.ts';

/**
 * How long `Retry-After` (RFC 9110 §10.2.3) asks to wait, in ms, or null if it is missing or malformed. A date counts from the
 * answer's own `Date`, so that a wrong clock on either side does no harm.
 */
export function retryAfterMs(headers: AnswerHeaders): number | null {
  const value = single(headers['retry-after']);
  if (value === null) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  const until = httpDate(value);
  const from = httpDate(single(headers.date) ?? '');
  return until === null || from === null ? null : Math.max(0, until - from);
}

function single(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value.trim() : (value?.[0]?.trim() ?? null);
}

const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const imfFixdate = /^\w{3}, (?<day>\d\d) (?<month>\w{3}) (?<year>\d{4}) (?<h>\d\d):(?<m>\d\d):(?<s>\d\d) GMT$/;
const rfc850 = /^\w{6,9}, (?<day>\d\d)-(?<month>\w{3})-(?<year>\d\d) (?<h>\d\d):(?<m>\d\d):(?<s>\d\d) GMT$/;
const asctime = /^\w{3} (?<month>\w{3}) (?<day>[ \d]\d) (?<h>\d\d):(?<m>\d\d):(?<s>\d\d) (?<year>\d{4})$/;

/** Milliseconds since 1970 of the three forms of an HTTP date, or null. `Date.parse` takes far too much for a date. */
function httpDate(text: string): number | null {
  const parts = (imfFixdate.exec(text) ?? rfc850.exec(text) ?? asctime.exec(text))?.groups;
  if (!parts) return null;
  const { day, month, year, h, m, s } = parts;
  const monthIndex = months.indexOf(month!);
  if (monthIndex < 0) return null;
  const fullYear = year!.length === 2 ? 2000 + Number(year) : Number(year);
  return Date.UTC(fullYear, monthIndex, Number(day), Number(h), Number(m), Number(s));
}
