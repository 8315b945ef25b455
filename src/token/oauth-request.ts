import * as oauth from 'oauth4webapi';
import type { NoToken } from './token-answer.ts';
import { sendTokenRequest, type TokenRoute } from './token-request.ts';

/** What every request to a token endpoint needs. */
export type OAuthClient = {
  tokenUrl: string;
  clientId: string;
  auth: 'basic' | 'post';
  scope: string | undefined;
  audience: string | undefined;
  route: TokenRoute;
  /** Asked each time, so that a secret can be replaced; null = a client without one. Throws SecretMissing. */
  clientSecret: () => Promise<string | null>;
};

/** What was asked for, and the answer, which is no token yet. `secrets` were in the request: servers echo what they were sent. */
export type OAuthAnswer = NoToken & { secrets: string[] };

/** Asks for a token once (RFC 6749 §4.4.2 and §6). Throws NoAnswer and SecretMissing. */
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
    { ...parameters, ...wishes(client) },
    {
      [oauth.allowInsecureRequests]: client.tokenUrl.startsWith('http:'), // where that is allowed is decided before
      [oauth.customFetch]: (url, request) => sendTokenRequest(client.route, url, { ...request, signal: closing }),
    },
  );
  const secrets = [secret ?? '', parameters.refresh_token ?? ''].filter(Boolean);
  return { status: response.status, headers: response.headers, body: parseObject(await response.text()), secrets };
}

/** Throws where the answer is no token in the sense of RFC 6749 §5.1. */
export async function checkTokenAnswer(client: OAuthClient, { access_token, token_type }: Record<string, unknown>) {
  // Only what we use: a strange `expires_in` or a token for other purposes beside it are no reason to refuse the answer.
  const response = Response.json({ access_token, token_type });
  return oauth.processGenericTokenEndpointResponse(serverOf(client), { client_id: client.clientId }, response);
}

function serverOf({ tokenUrl }: OAuthClient): oauth.AuthorizationServer {
  return { issuer: new URL(tokenUrl).origin, token_endpoint: tokenUrl };
}

function authOf({ auth }: OAuthClient, secret: string | null): oauth.ClientAuth {
  if (secret === null) return oauth.None();
  return auth === 'basic' ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret);
}

function wishes({ scope, audience }: OAuthClient): Record<string, string> {
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
