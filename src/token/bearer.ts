import { ExpungeError } from '../errors.ts';

/**
 * The header for a token. Throws CREDENTIALS, without showing it, for text that is no b64token (RFC 6750 §2.1): it may be a whole
 * file, or break the header in two.
 */
export function bearerHeader(token: string, source: string): string {
  if (isBearerToken(token)) return `Bearer ${token}`;
  const got = token === '' ? 'nothing' : 'other text';
  throw new ExpungeError('CREDENTIALS', `${source}: expected one bearer token, got ${got}`, { next: tokenWords });
}

/** Whether this can stand behind `Bearer `. */
export function isBearerToken(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]+=*$/.test(text);
}

/** What a token looks like, for whoever gave something else. */
export const tokenWords =
  'a token consists of letters, digits and - . _ ~ + / with = at the end; its content is not shown here';
