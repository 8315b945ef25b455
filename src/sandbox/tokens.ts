import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** The access tokens that the sandbox accepts (a token that never expires, and the issued tokens), and its refresh token. */
type Tokens = {
  accepts(authorization: string | undefined): boolean;
  issue(): string;
  revokeIssued(): void; // issued tokens are refused from now on, as if expired
  readonly refreshToken: string; // the only valid refresh token
  rotate(presented: string): boolean; // true for the valid token, which it replaces
};

type TokenOptions = { token: string; lifeSeconds: number; oneLiveToken: boolean; now: () => number };

export function createTokens({ token, lifeSeconds, oneLiveToken, now }: TokenOptions): Tokens {
  const expiries = new Map<string, number>();
  const always = `Bearer ${token}`;
  let refreshToken = makeToken();
  return {
    accepts: (authorization) => authorization === always || isIssued(authorization ?? ''),
    issue() {
      dropExpired(expiries, now());
      if (oneLiveToken) expiries.clear();
      const issued = makeToken();
      expiries.set(issued, now() + lifeSeconds * 1_000);
      return issued;
    },
    revokeIssued: () => expiries.clear(),
    get refreshToken() {
      return refreshToken;
    },
    rotate(presented) {
      if (presented !== refreshToken) return false;
      refreshToken = makeToken();
      return true;
    },
  };

  function isIssued(authorization: string): boolean {
    const [scheme, presented = ''] = authorization.split(' ', 2);
    if (scheme?.toLowerCase() !== 'bearer') return false;
    return presented === token || now() < (expiries.get(presented) ?? 0);
  }
}

function makeToken(): string {
  return randomBytes(24).toString('base64url');
}

function dropExpired(expiries: Map<string, number>, now: number): void {
  for (const [token, expiry] of expiries) if (expiry <= now) expiries.delete(token);
}

/** The client that may request tokens. */
export type Client = { id: string; secret: string };

/** The faults of the token endpoint. */
export type TokenFaults = {
  latencyMs?: number; // the time before it answers
  status?: number; // the status instead of a token; a 3xx carries a Location, a 4xx an OAuth error
  error?: string; // the OAuth error of a 4xx
  retryAfterSeconds?: number; // the Retry-After of those answers
  first?: number; // only this many requests since the assignment get that status; without it, all do
  answer?: Record<string, unknown>; // overrides fields of the answer with a token; undefined removes a field
};

/** The state of the token endpoint. */
export type TokenService = {
  client: Client;
  lifeSeconds: number;
  tokens: Tokens;
  faults: TokenFaults;
  failures: number;
};

type TokenAnswer = {
  status: number;
  body: Record<string, unknown>;
  headers: Record<string, string>;
};

/**
 * Answers a token request: client credentials (RFC 6749 §4.4) or a refresh token (§6), which is rotated. The client's credentials come by HTTP Basic
 * or in the form. Throws if the form is too long or breaks off.
 */
export async function answerTokenRequest(request: IncomingMessage, service: TokenService): Promise<TokenAnswer> {
  const form = await readForm(request);
  if (service.faults.latencyMs) await sleep(service.faults.latencyMs);
  if (fails(service)) return failure(service.faults);
  const presented = fromBasic(request.headers.authorization) ?? fromForm(form);
  if (presented.id !== service.client.id || presented.secret !== service.client.secret) {
    return refusal(401, 'invalid_client', { 'www-authenticate': 'Basic' });
  }
  return grant(form, service);
}

function fails(service: TokenService): boolean {
  const { status, first = Number.POSITIVE_INFINITY } = service.faults;
  return status !== undefined && service.failures++ < first;
}

function failure({ status = 503, error = 'temporarily_unavailable', retryAfterSeconds }: TokenFaults): TokenAnswer {
  const retryAfter = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
  const location = status >= 300 && status < 400 ? { location: '/elsewhere?code=1' } : {};
  return refusal(status, error, { ...retryAfter, ...location });
}

function grant(form: URLSearchParams, { tokens, lifeSeconds, faults }: TokenService): TokenAnswer {
  const type = form.get('grant_type');
  const isRefresh = type === 'refresh_token';
  if (!isRefresh && type !== 'client_credentials') {
    return refusal(400, type === null ? 'invalid_request' : 'unsupported_grant_type');
  }
  if (isRefresh && !tokens.rotate(form.get('refresh_token') ?? '')) return refusal(400, 'invalid_grant');
  const body = { access_token: tokens.issue(), token_type: 'Bearer', expires_in: lifeSeconds };
  const rotated = isRefresh ? { refresh_token: tokens.refreshToken } : {};
  return { status: 200, body: { ...body, ...rotated, ...faults.answer }, headers: { 'cache-control': 'no-store' } };
}

function refusal(status: number, error: string, headers: Record<string, string> = {}): TokenAnswer {
  return { status, body: { error }, headers };
}

const formLimit = 16_384;

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) {
    text += part;
    if (text.length > formLimit) throw new Error('the form is too long');
  }
  return new URLSearchParams(text);
}

function fromForm(form: URLSearchParams): Client {
  return { id: form.get('client_id') ?? '', secret: form.get('client_secret') ?? '' };
}

function fromBasic(authorization: string | undefined): Client | null {
  const encoded = /^basic (.+)$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return null;
  const [, id = '', secret = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  return { id: formDecode(id), secret: formDecode(secret) };
}

// RFC 6749, section 2.3.1: both parts are form-encoded before they are joined by the colon.
function formDecode(text: string): string {
  return new URLSearchParams(`text=${text.replaceAll('&', '%26')}`).get('text') ?? '';
}
