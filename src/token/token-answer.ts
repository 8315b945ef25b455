import { retryAfterMs } from '../http/retry-after.ts';
import { type IssueEnd, refused, unavailable } from './issuer.ts';
import { shown } from './secret-text.ts';

/** An answer of a token endpoint that is no token; `body` is null where it is no JSON object. */
export type NoToken = { status: number; headers: Headers; body: Record<string, unknown> | null };

const tryLaterStatuses = [408, 425, 429];
const tryLaterErrors = ['temporarily_unavailable', 'server_error', 'slow_down'];

/**
 * What an answer without a token means (RFC 6749 §5.2). Trouble of the server and redirects, which are not followed, may pass. Every
 * other 4xx is about us: asking again would be answered the same. `secrets` are masked in what the server says.
 */
export function readNoToken({ status, headers, body }: NoToken, secrets: readonly string[]): IssueEnd {
  const asked = retryAfterMs({ ...optional(headers, 'retry-after'), ...optional(headers, 'date') }, Date.now());
  const error = errorOf(body, secrets);
  if (status >= 300 && status < 400) return unavailable(redirectWords(status, headers, secrets));
  const isAboutUs =
    (status >= 400 && status < 500 && !tryLaterStatuses.includes(status)) || (status === 200 && body?.error);
  if (!isAboutUs || tryLaterErrors.includes(error)) {
    return unavailable(`the token endpoint answers ${status}${error && ` (${error})`}${otherWords(status)}`, asked);
  }
  const description = typeof body?.error_description === 'string' ? shown(body.error_description, secrets) : '';
  const says = [error, description].filter(Boolean).join(': ');
  return refused(`the token endpoint refused to give a token: ${status}${says && ` ${says}`}${hintFor(status, error)}`);
}

/** One of the words of RFC 6749 §5.2, or of an extension. */
function errorOf(body: NoToken['body'], secrets: readonly string[]): string {
  const error = body?.error;
  return typeof error === 'string' && /^[\w.-]{1,60}$/.test(error) ? shown(error, secrets) : '';
}

function optional(headers: Headers, name: string): Record<string, string> {
  const value = headers.get(name);
  return value === null ? {} : { [name]: value };
}

/** Only where it leads, and only a plain path: a query and all that is encoded may hold anything. */
function redirectWords(status: number, headers: Headers, secrets: readonly string[]): string {
  const location = headers.get('location') ?? '';
  const origin = URL.canParse(location) ? new URL(location).origin : '';
  const path = location.slice(origin.length).split(/[?#]/)[0] ?? '';
  const to = origin + (/^[\w./-]{1,60}$/.test(path) ? path : '');
  const where = to && ` to ${shown(to, secrets)}`;
  return `the token endpoint redirects${where} (${status}), which is not followed; is --token-url right?`;
}

function otherWords(status: number): string {
  return status >= 200 && status < 300 ? ', but without a token' : '';
}

function hintFor(status: number, error: string): string {
  if (error === 'invalid_client') return '; are --client-id, the client secret and --token-auth right?';
  if (error === 'invalid_grant') return '; what it was asked with is no longer good';
  return error === '' && [404, 405].includes(status) ? '; is --token-url right?' : '';
}
