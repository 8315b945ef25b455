import { throttlingStatus } from '../model/status.ts';
import { suggest } from '../model/suggest.ts';

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

/**
 * Every fault of one request:
 * - `status-503`: this answer instead of the delete; any 2xx but 204 to 5xx, and a 3xx carries a Location
 * - `status-503-executed`: the delete happens, and then this answer
 * - `status-429-seconds` and the other forms: as the first, with that kind of Retry-After
 * - `reset`, `hang`: the connection is reset, or no answer ever comes; `-executed`: after the delete
 * - `html-200`: a page, as captive portals send it, instead of the delete
 * - `body-204`: the delete, then a 204 that illegally claims and carries five bytes of body
 */
export type FaultKind =
  | `status-${number}`
  | `status-${number}-executed`
  | `status-${number}-${RetryAfterForm}`
  | (typeof plainKinds)[number];

const plainKinds = ['reset', 'reset-executed', 'hang', 'hang-executed', 'html-200', 'body-204'] as const;

const exampleKinds = [
  ...plainKinds,
  ...[302, throttlingStatus, 500, 502, 503, 504].flatMap((status) => [`status-${status}`, `status-${status}-executed`]),
  ...retryAfterForms.flatMap((form) => [`status-${throttlingStatus}-${form}`, `status-503-${form}`]),
];

/** A fault to answer with. `status` is 0 for no answer. */
export type Fault = {
  ending: 'status' | 'reset' | 'hang' | 'html' | 'stray-body';
  executes: boolean;
  status: number;
  retryAfter: { form: RetryAfterForm; seconds: number } | null;
};

/** The fault with this name. Throws an Error that lists the names. */
export function readFault(kind: string, retryAfterSeconds: number): Fault {
  const status = statusKind.exec(kind);
  if (status && kind !== 'status-204') return statusFault(Number(status[1]), status[2], retryAfterSeconds);
  const fault = plainFaults.get(kind);
  if (fault) return fault;
  throw new Error(
    `"${kind}" is not a fault: expected status-<200 to 599>, with -executed or -${retryAfterForms.join(', -')} if need be, ` +
      `or one of ${plainKinds.join(', ')}.${suggest(kind, exampleKinds)}`,
  );
}

const statusKind = new RegExp(`^status-([2-5]\\d\\d)(?:-(executed|${retryAfterForms.join('|')}))?$`);

function statusFault(status: number, suffix: string | undefined, seconds: number): Fault {
  const executes = suffix === 'executed';
  const retryAfter = suffix && !executes ? { form: suffix as RetryAfterForm, seconds } : null;
  return { ending: 'status', executes, status, retryAfter };
}

const plainFaults = new Map<string, Fault>(
  (
    [
      ['reset', 'reset', false, 0],
      ['reset-executed', 'reset', true, 0],
      ['hang', 'hang', false, 0],
      ['hang-executed', 'hang', true, 0],
      ['html-200', 'html', false, 200],
      ['body-204', 'stray-body', true, 204],
    ] as const
  ).map(([kind, ending, executes, status]) => [kind, { ending, executes, status, retryAfter: null }]),
);
