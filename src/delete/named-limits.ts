import { type HeaderFields, readHeaderValues, retryAfterMs } from '../http/retry-after.ts';
import { classifyStatus, type StatusClass } from '../model/status.ts';

/**
 * How an API says "not now" with a status that means something else: by a header, or by a code in one field of a JSON body. A text for people never
 * decides, because tenants and attackers may write into it.
 */
type NamedLimit = {
  api: string;
  status: number;
  /** The name of the header, and the pattern of its value. */
  header?: readonly [name: string, value: RegExp];
  /** The path to the code in the body; `0` is the first element of a list. */
  field?: readonly string[];
  codes?: readonly string[];
};

const aws = [
  'ThrottlingException',
  'Throttling',
  'RequestThrottled',
  'RequestThrottledException',
  'TooManyRequestsException',
];
const google = ['rateLimitExceeded', 'userRateLimitExceeded', 'quotaExceeded'];

/** One row for each way to say it. */
const namedLimits: readonly NamedLimit[] = [
  // https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api: 403 or 429; secondary limits send Retry-After
  { api: 'GitHub', status: 403, header: ['x-ratelimit-remaining', /^0$/] },
  // https://developers.google.com/calendar/api/guides/errors, https://developers.google.com/drive/api/guides/handle-errors
  { api: 'Google', status: 403, field: ['error', 'errors', '0', 'reason'], codes: google },
  // https://cloud.google.com/apis/design/errors
  { api: 'Google', status: 403, field: ['error', 'status'], codes: ['RESOURCE_EXHAUSTED'] },
  // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html: 400 ThrottlingException
  { api: 'AWS', status: 400, header: ['x-amzn-errortype', new RegExp(`^(${aws.join('|')})(:|$)`)] },
  { api: 'AWS', status: 400, field: ['__type'], codes: aws },
  // https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/errorcodes.htm
  { api: 'Salesforce', status: 403, field: ['0', 'errorCode'], codes: ['REQUEST_LIMIT_EXCEEDED'] },
];

type StatusAnswer = { status: number; headers: HeaderFields; body: string };

/** 401, 402, 404, 407, 408, 410, 429 and 451 keep their meaning, whatever else they say. */
const mayBeLimits: readonly StatusClass[] = ['forbidden', 'busy', 'refused'];

/** Whether an answer with a 4xx other than 429 is about the rate: it has a Retry-After that can be read, or matches one of the rows. */
export function namesLimit(answer: StatusAnswer): boolean {
  if (!mayBeLimits.includes(classifyStatus(answer.status))) return false;
  if (retryAfterMs(answer.headers, 0) !== null) return true; // whether it can be read does not depend on a clock
  return namedLimits.some((row) => row.status === answer.status && fits(row, answer.headers, answer.body));
}

function fits({ header, field, codes }: NamedLimit, headers: HeaderFields, body: string): boolean {
  if (header !== undefined) return readHeaderValues(headers, header[0]).some((value) => header[1].test(value));
  const code = fieldOf(body, field ?? []);
  // Some codes have a namespace: com.amazon.coral.availability#ThrottlingException
  return typeof code === 'string' && codes!.includes(code.slice(code.indexOf('#') + 1));
}

/** A field of a JSON body, of which at most 2 kB are kept; undefined for any other body. */
function fieldOf(body: string, path: readonly string[]): unknown {
  if (!/^\s*[[{]/.test(body)) return undefined;
  try {
    let value: unknown = JSON.parse(body);
    for (const name of path) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
      value = (value as Record<string, unknown>)[name];
    }
    return value;
  } catch {
    return undefined;
  }
}
