import type { HeaderFields } from '../http/retry-after.ts';
import { maskSecrets } from './fixed-token.ts';

type Refusal = { status: number; headers: HeaderFields; body: string; authorization: string };

/**
 * The answer that refused a token, for people: its status, and the API's own words. `401`, or `401: Token used before issued`. The words are
 * `error_description`, otherwise `error`, of WWW-Authenticate (RFC 6750 §3), or a text of a JSON body. At most 200 characters in one line, without
 * the token.
 */
export function refusalWords({ status, headers, body, authorization }: Refusal): string {
  const challenge = String(headers['www-authenticate'] ?? '');
  const words = quoted(challenge, 'error_description') || inBody(body) || quoted(challenge, 'error');
  const shown = maskSecrets(words, [authorization.replace(/^Bearer /, '')]);
  return `${status}${shown && `: ${shown}`}`;
}

function quoted(challenge: string, name: string): string {
  const [, text = ''] = new RegExp(`\\b${name}\\s*=\\s*"([^"]{0,1000})"`, 'i').exec(challenge) ?? [];
  return text;
}

/** The fields of a JSON body that hold words, the best first. */
const wordFields = ['error_description', 'message', 'error'];

function inBody(body: string): string {
  try {
    const parsed = JSON.parse(body);
    const texts = [parsed, parsed?.error].flatMap((value) => wordFields.map((name) => value?.[name]));
    return texts.find((text) => typeof text === 'string') ?? '';
  } catch {
    return '';
  }
}
