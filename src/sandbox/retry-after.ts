/** The forms a Retry-After header can have: seconds, and the three dates of RFC 9110, section 5.6.7. */
export const retryAfterForms = ['seconds', 'imf-fixdate', 'rfc850', 'asctime'] as const;
export type RetryAfterForm = (typeof retryAfterForms)[number];

/** The value of a Retry-After header that asks for this wait. Dates are rounded up: obeying one never comes too early. */
export function formatRetryAfter(form: RetryAfterForm, seconds: number, nowMs: number): string {
  if (form === 'seconds') return String(seconds);
  return formatDate(form, new Date(Math.ceil(nowMs / 1_000 + seconds) * 1_000));
}

function formatDate(form: Exclude<RetryAfterForm, 'seconds'>, date: Date): string {
  const imfFixdate = date.toUTCString();
  const [weekday, day, month, year, time] = imfFixdate.split(/,? /) as [string, string, string, string, string];
  if (form === 'rfc850') return `${longWeekdays[date.getUTCDay()]}, ${day}-${month}-${year.slice(-2)} ${time} GMT`;
  if (form === 'asctime') return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`;
  return imfFixdate;
}

const longWeekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
