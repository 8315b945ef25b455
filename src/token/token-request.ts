import * as oauth from 'oauth4webapi';
import type { Dispatcher } from 'undici';
import { retryAfterMs } from '../http/retry-after.ts';
import { openDispatcher, type Route } from '../http/send-once.ts';
import { throttlingStatus } from '../model/status.ts';
import { describeConnectionError } from '../system-errors.ts';
import { maskSecrets } from './fixed-token.ts';
import { type IssueResult, refused, unavailable } from './token.ts';

/** The client and the endpoint of a token request. */
export type OAuthClient = {
  tokenUrl: string;
  clientId: string;
  auth: 'basic' | 'post';
  scope: string | undefined;
  audience: string | undefined;
  route: Route;
  /** Reads the secret for each request, so that it can be replaced; null = a client without a secret. Throws SecretMissing. */
  clientSecret: () => Promise<string | null>;
};

/** Thrown if no complete answer came; the message says why. */
export class NoAnswer extends Error {}

/** An answer of the token endpoint. `secrets` were in the request, and servers may echo them. */
export type OAuthAnswer = ErrorAnswer & { secrets: string[] };

/** Requests a token once (RFC 6749 §4.4.2 and §6). Throws NoAnswer and SecretMissing. */
export async function askTokenEndpoint(
  client: OAuthClient,
  grantType: string,
  parameters: Record<string, string>,
  closing?: AbortSignal,
): Promise<OAuthAnswer> {
  const secret = await client.clientSecret();
  const response = await oauth.genericTokenEndpointRequest(
    serverOf(client),
    { client_id: client.clientId },
    authOf(client, secret),
    grantType,
    { ...parameters, ...optionalParameters(client) },
    {
      [oauth.allowInsecureRequests]: client.tokenUrl.startsWith('http:'), // `--allow-http` is checked before
      [oauth.customFetch]: (url, request) => sendTokenRequest(client.route, url, { ...request, signal: closing }),
    },
  );
  const secrets = [secret ?? '', parameters.refresh_token ?? ''].filter(Boolean);
  return { status: response.status, headers: response.headers, body: parseObject(await response.text()), secrets };
}

/** Throws for an answer that is not a token response by RFC 6749 §5.1. */
export async function checkTokenAnswer(client: OAuthClient, { access_token, token_type }: Record<string, unknown>) {
  // Only these fields are used: an invalid `expires_in` or an additional token does not make the answer unusable.
  const response = Response.json({ access_token, token_type });
  return oauth.processGenericTokenEndpointResponse(serverOf(client), { client_id: client.clientId }, response);
}

/** An answer of a token endpoint; `body` is null if it is not a JSON object. */
type ErrorAnswer = { status: number; headers: Headers; body: Record<string, unknown> | null };

const tryLaterStatuses = [408, 425, throttlingStatus];
const tryLaterErrors = ['temporarily_unavailable', 'server_error', 'slow_down'];

/**
 * Decides the meaning of an answer without a token (RFC 6749 §5.2). Errors of the server and redirects, which are not followed, may pass. Any other
 * 4xx is about the request, and would be repeated. `secrets` are masked in the text of the server.
 */
export function readErrorAnswer({ status, headers, body }: ErrorAnswer, secrets: readonly string[]): IssueResult {
  const asked = retryAfterMs({ ...optional(headers, 'retry-after'), ...optional(headers, 'date') }, Date.now());
  const error = errorOf(body, secrets);
  const description = typeof body?.error_description === 'string' ? maskSecrets(body.error_description, secrets) : '';
  const says = [error, description].filter(Boolean).join(': ');
  if (status >= 300 && status < 400) return unavailable(describeRedirect(status, headers, secrets));
  const isAboutUs =
    (status >= 400 && status < 500 && !tryLaterStatuses.includes(status)) || (status === 200 && body?.error);
  if (!isAboutUs || tryLaterErrors.includes(error)) {
    return unavailable(
      `the token endpoint answers ${status}${says && ` (${says})`}${describeMissingToken(status)}`,
      asked,
    );
  }
  return refused(`the token endpoint refused to give a token: ${status}${says && ` ${says}`}${hintFor(status, error)}`);
}

/** The request as `oauth4webapi` makes it. */
type TokenRequest = {
  method: 'POST';
  headers: Record<string, string>;
  body: URLSearchParams;
  signal?: AbortSignal | undefined;
};

const deadlineMs = 10_000;
const maxBodyLength = 65_536;

/**
 * Sends one request for a token, on a connection of its own, which is closed afterwards. Redirects are not followed. Throws NoAnswer unless a
 * complete answer of at most 64 KiB comes within 10 s.
 */
async function sendTokenRequest(route: Route, url: string, request: TokenRequest): Promise<Response> {
  const dispatcher = await openDispatcher(new URL(url).origin, route);
  const given = new AbortController();
  const giveUp = () => given.abort(new NoAnswer('no answer'));
  const timer = setTimeout(() => given.abort(new NoAnswer(`no answer in ${deadlineMs / 1_000} s`)), deadlineMs);
  request.signal?.addEventListener('abort', giveUp, { once: true });
  if (request.signal?.aborted) giveUp();
  try {
    return await exchange(dispatcher, url, request, given.signal);
  } catch (error) {
    throw error instanceof NoAnswer ? error : new NoAnswer(describeConnectionError(error), { cause: error });
  } finally {
    clearTimeout(timer);
    request.signal?.removeEventListener('abort', giveUp);
    await dispatcher.destroy();
  }
}

async function exchange(
  dispatcher: Dispatcher,
  url: string,
  { method, headers, body }: TokenRequest,
  signal: AbortSignal,
): Promise<Response> {
  const { origin, pathname, search } = new URL(url);
  const options = { origin, path: pathname + search, method, headers, body: body.toString(), signal };
  const answer = await dispatcher.request(options);
  const text = await readBody(answer.body);
  // The constructor accepts no body for these statuses.
  return new Response([204, 205, 304].includes(answer.statusCode) ? null : text, {
    status: answer.statusCode,
    headers: Object.entries(answer.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    ),
  });
}

async function readBody(body: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > maxBodyLength) throw new NoAnswer('its answer is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function serverOf({ tokenUrl }: OAuthClient): oauth.AuthorizationServer {
  return { issuer: new URL(tokenUrl).origin, token_endpoint: tokenUrl };
}

function authOf({ auth }: OAuthClient, secret: string | null): oauth.ClientAuth {
  if (secret === null) return oauth.None();
  return auth === 'basic' ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret);
}

function optionalParameters({ scope, audience }: OAuthClient): Record<string, string> {
  return { ...(scope === undefined ? {} : { scope }), ...(audience === undefined ? {} : { audience }) };
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** The error code of RFC 6749 §5.2 or of an extension; '' if there is none. */
function errorOf(body: ErrorAnswer['body'], secrets: readonly string[]): string {
  const error = body?.error;
  return typeof error === 'string' && /^[\w.-]{1,60}$/.test(error) ? maskSecrets(error, secrets) : '';
}

function optional(headers: Headers, name: string): Record<string, string> {
  const value = headers.get(name);
  return value === null ? {} : { [name]: value };
}

/** Describes a redirect by its origin and plain path, because the query and encoded parts may hold secrets. */
function describeRedirect(status: number, headers: Headers, secrets: readonly string[]): string {
  const location = headers.get('location') ?? '';
  const origin = URL.canParse(location) ? new URL(location).origin : '';
  const path = location.slice(origin.length).split(/[?#]/)[0] ?? '';
  const to = origin + (/^[\w./-]{1,60}$/.test(path) ? path : '');
  const where = to && ` to ${maskSecrets(to, secrets)}`;
  return `the token endpoint redirects${where} (${status}), which is not followed; is --token-url right?`;
}

function describeMissingToken(status: number): string {
  return status >= 200 && status < 300 ? ', but without a token' : '';
}

function hintFor(status: number, error: string): string {
  if (error === 'invalid_client') return '; are --client-id, the client secret and EXPUNGE_TOKEN_AUTH right?';
  if (error === 'invalid_grant')
    return '; the grant that it was requested with, such as a refresh token, is no longer valid';
  return error === '' && [404, 405].includes(status) ? '; is --token-url right?' : '';
}
