import { ExpungeError } from '../errors.ts';

/**
 * The header for a token. Throws CREDENTIALS, without showing it, for text that is no b64token (RFC 6750 §2.1): it may be a whole
 * file, or break the header in two.
 */
export function bearerHeader(text: string, source: string): string {
  const token = bareToken(text);
  if (isBearerToken(token)) return `Bearer ${token}`;
  const got = text === '' ? 'nothing' : 'other text';
  throw new ExpungeError('CREDENTIALS', `${source}: expected one bearer token, got ${got}`, { next: tokenWords });
}

/** A token without the `Bearer ` before it: people copy the whole value of the header, and no token can hold a space. */
export function bareToken(text: string): string {
  return text.replace(/^Bearer +/i, '');
}

/** Whether this can stand behind `Bearer `. */
export function isBearerToken(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]+=*$/.test(text);
}

/** What a token looks like, for whoever gave something else. */
export const tokenWords =
  'a token consists of letters, digits and - . _ ~ + / with = at the end; its content is not shown here';
