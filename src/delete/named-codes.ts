import { type HeaderFields, readHeaderValues, retryAfterMs } from '../http/retry-after.ts';
import { classifyStatus, type StatusClass } from '../model/status.ts';

/** What an answer is about, if it is not about its id: the rate limit, or the token. */
export type Named = 'limit' | 'token';

/**
 * How an API says "not now" or "another token" with a status that means something else: by a header, or by a code in one field of a JSON body. A text
 * for people never decides, because tenants and attackers may write into it.
 */
type NamedCode = {
  api: string;
  means: Named;
  statuses: readonly number[];
  /** The name of the header, and the pattern of its value. */
  header?: readonly [name: string, value: RegExp];
  /** The path to the code in the body; `0` is the first element of a list. */
  field?: readonly string[];
  codes?: readonly string[];
};

const awsLimits = [
  'ThrottlingException',
  'Throttling',
  'RequestThrottled',
  'RequestThrottledException',
  'TooManyRequestsException',
];
const awsTokens = ['ExpiredToken', 'ExpiredTokenException', 'TokenRefreshRequired'];
const azureTokens = ['ExpiredAuthenticationToken', 'InvalidAuthenticationToken'];
const oauthTokens = ['invalid_token', 'expired_token', 'token_expired'];
const googleLimits = ['rateLimitExceeded', 'userRateLimitExceeded', 'quotaExceeded'];

/** The statuses with which an API may refuse a token. 440 and 498 are Microsoft's and Esri's own. */
const refusals = [400, 403, 440, 498];

/** One row for each way to say it. A token comes first: waiting does not bring an expired one back. */
const namedCodes: readonly NamedCode[] = [
  // https://www.rfc-editor.org/rfc/rfc6750#section-3.1, with another status
  {
    api: 'OAuth',
    means: 'token',
    statuses: refusals,
    header: ['www-authenticate', new RegExp(`\\berror\\s*=\\s*"?(${oauthTokens.join('|')})\\b`, 'i')],
  },
  { api: 'OAuth', means: 'token', statuses: refusals, field: ['error'], codes: oauthTokens },
  // https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html
  { api: 'AWS', means: 'token', statuses: refusals, header: ['x-amzn-errortype', startsWithOneOf(awsTokens)] },
  { api: 'AWS', means: 'token', statuses: refusals, field: ['__type'], codes: awsTokens },
  // https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
  { api: 'Azure', means: 'token', statuses: refusals, field: ['error', 'code'], codes: azureTokens },
  // https://developers.arcgis.com/rest/users-groups-and-items/error-handling
  { api: 'Esri', means: 'token', statuses: refusals, field: ['error', 'code'], codes: ['498'] },
  // https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api: 403 or 429; secondary limits send Retry-After
  { api: 'GitHub', means: 'limit', statuses: [403], header: ['x-ratelimit-remaining', /^0$/] },
  // https://developers.google.com/calendar/api/guides/errors, https://developers.google.com/drive/api/guides/handle-errors
  { api: 'Google', means: 'limit', statuses: [403], field: ['error', 'errors', '0', 'reason'], codes: googleLimits },
  // https://cloud.google.com/apis/design/errors
  { api: 'Google', means: 'limit', statuses: [403], field: ['error', 'status'], codes: ['RESOURCE_EXHAUSTED'] },
  // https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html: 400 ThrottlingException
  { api: 'AWS', means: 'limit', statuses: [400], header: ['x-amzn-errortype', startsWithOneOf(awsLimits)] },
  { api: 'AWS', means: 'limit', statuses: [400], field: ['__type'], codes: awsLimits },
  // https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/errorcodes.htm
  { api: 'Salesforce', means: 'limit', statuses: [403], field: ['0', 'errorCode'], codes: ['REQUEST_LIMIT_EXCEEDED'] },
];

function startsWithOneOf(codes: readonly string[]): RegExp {
  return new RegExp(`^(${codes.join('|')})(:|$)`);
}

type StatusAnswer = { status: number; headers: HeaderFields; body: string };

/** 401, 402, 404, 407, 408, 410, 429 and 451 keep their meaning, whatever else they say. */
const mayName: readonly StatusClass[] = ['forbidden', 'busy', 'refused'];

/** What an answer with another 4xx is about: the row that it matches, or the rate if it has a Retry-After that can be read; null = its id. */
export function namedBy(answer: StatusAnswer): Named | null {
  if (!mayName.includes(classifyStatus(answer.status))) return null;
  const row = namedCodes.find((one) => one.statuses.includes(answer.status) && fits(one, answer.headers, answer.body));
  if (row !== undefined) return row.means;
  return retryAfterMs(answer.headers, 0) === null ? null : 'limit'; // whether it can be read does not depend on a clock
}

/** Whether an answer with a 4xx other than 429 is about the rate. */
export function namesLimit(answer: StatusAnswer): boolean {
  return namedBy(answer) === 'limit';
}

/** Whether an answer refuses the token: a 401, or another 4xx that names the token. */
export function refusesToken(answer: StatusAnswer): boolean {
  return classifyStatus(answer.status) === 'unauthorized' || namedBy(answer) === 'token';
}

function fits({ header, field, codes }: NamedCode, headers: HeaderFields, body: string): boolean {
  if (header !== undefined) return readHeaderValues(headers, header[0]).some((value) => header[1].test(value));
  const code = fieldOf(body, field ?? []);
  // Some codes have a namespace: com.amazon.coral.availability#ThrottlingException
  const isCode = typeof code === 'string' || typeof code === 'number';
  return isCode && codes!.includes(String(code).replace(/^.*?#/, ''));
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
