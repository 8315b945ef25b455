import type { HeaderFields } from '../http/retry-after.ts';
import { maskSecrets } from './fixed-token.ts';

/**
 * Reads the API's own words for why it refused a token, or '': `error_description`, otherwise `error`, of WWW-Authenticate (RFC 6750 §3) or of a JSON
 * body. One line of at most 200 characters, without the token.
 */
export function refusalWords(headers: HeaderFields, body: string, authorization: string): string {
  const challenge = String(headers['www-authenticate'] ?? '');
  const words =
    quoted(challenge, 'error_description') || inBody(body, 'error_description') || quoted(challenge, 'error');
  return maskSecrets(words, [authorization.replace(/^Bearer /, '')]);
}

function quoted(challenge: string, name: string): string {
  const [, text = ''] = new RegExp(`\\b${name}\\s*=\\s*"([^"]{0,1000})"`, 'i').exec(challenge) ?? [];
  return text;
}

function inBody(body: string, name: string): string {
  try {
    const value = JSON.parse(body)?.[name];
    return typeof value === 'string' ? value : '';
  } catch {
    return '';
  }
}
