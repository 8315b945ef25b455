import { messageOf } from '../errors.ts';
import { isBearerToken, tokenWords } from './bearer.ts';
import { type IssueEnd, type Issuer, refused, unavailable } from './issuer.ts';
import { askTokenEndpoint, checkTokenAnswer, type OAuthAnswer, type OAuthClient } from './oauth-request.ts';
import { SecretMissing } from './secret-text.ts';
import { readNoToken } from './token-answer.ts';
import { lifeMsOf } from './token-life.ts';
import { NoAnswer } from './token-request.ts';

/** Tokens by client credentials (RFC 6749 §4.4). */
export function clientCredentials(client: OAuthClient): Issuer {
  return {
    source: oauthSource(client),
    issue: (closing) =>
      issueEnd(async () => readToken(client, await askTokenEndpoint(client, 'client_credentials', {}, closing))),
  };
}

/** `https://auth.example.com/token (client abc)`: without the query of the URL, which may hold anything. */
export function oauthSource({ tokenUrl, clientId }: Pick<OAuthClient, 'tokenUrl' | 'clientId'>): string {
  const { origin, pathname } = new URL(tokenUrl);
  return `${origin}${pathname} (client ${clientId})`;
}

/** Makes an end of what goes wrong on the way. Bugs are thrown on. */
export async function issueEnd(issue: () => Promise<IssueEnd>): Promise<IssueEnd> {
  try {
    return await issue();
  } catch (error) {
    if (error instanceof NoAnswer) return unavailable(`the token endpoint cannot be reached (${messageOf(error)})`);
    // Whoever replaces the file may be about to put it back.
    if (error instanceof SecretMissing) return unavailable(messageOf(error));
    throw error;
  }
}

/** The token in an answer. One of another type, or that cannot stand in a header, is refused: the next would be the same. */
export async function readToken(client: OAuthClient, answer: OAuthAnswer): Promise<IssueEnd> {
  const { status, body, secrets } = answer;
  if (status !== 200 || body === null || typeof body.error === 'string') return readNoToken(answer, secrets);
  const token = body.access_token;
  if (typeof token !== 'string' || !isBearerToken(token)) {
    return refused(`the token endpoint gave no token that can be used; ${tokenWords}`);
  }
  if (!(await isBearer(client, body))) return refused('the token endpoint gave a token of another type than Bearer');
  return { kind: 'issued', header: `Bearer ${token}`, lifeMs: lifeMsOf(body.expires_in) };
}

async function isBearer(client: OAuthClient, body: Record<string, unknown>): Promise<boolean> {
  try {
    return (await checkTokenAnswer(client, body)).token_type === 'bearer';
  } catch {
    return false;
  }
}
