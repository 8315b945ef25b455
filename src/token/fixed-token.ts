import { readFile } from 'node:fs/promises';
import { describeFileError } from '../system-errors.ts';
import { bearerHeader, type Token } from './token.ts';

/** A token that never changes. Throws CREDENTIALS if it is none. */
export function fixedToken(token: string, source: string): Token {
  const header = bearerHeader(token, source);
  return {
    ...staticToken,
    authorization: () => header,
    refused: () => ({ halt: `the API refused the token from ${source} (401)` }),
    source,
  };
}

/** What tokens that are simply there have in common: nothing to wait for, nothing to ask for. */
export const staticToken = {
  waiting: '',
  accepted: () => {},
  refreshes: 0,
  failedRefreshes: 0,
  lifeMs: null,
  start: async () => {},
  onChange: () => {},
  onRefused: () => {},
  close: async () => {},
};

const maxCharacters = 200;

/**
 * Text from outside, fit to be shown: one line of at most 200 characters, without these secrets in any form they were sent in, and without
 * what looks like one. Rather too much is masked than too little.
 */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  let masked = text.replace(/[\p{C}\s]+/gu, ' ').trim();
  for (const secret of secrets.flatMap(formsOf)) masked = masked.replaceAll(secret, '***');
  if (secrets.some((secret) => containsSecret(masked, secret))) return '(not shown, it holds a secret)';
  return masked
    .replace(/(bearer|basic)\s+\S+/gi, '$1 ***')
    .replace(/(token|secret|password|key)(["']?\s*[=:]\s*)\S+/gi, '$1$2***')
    .replace(/[\w.~+-]{24,}=*/g, (word) => (/\d/.test(word) ? '***' : word))
    .slice(0, maxCharacters);
}

/** As it is, and as a part of a URL or a form. */
function formsOf(secret: string): string[] {
  if (secret === '') return [];
  return [secret, encodeURIComponent(secret), new URLSearchParams({ s: secret }).toString().slice(2)];
}

/** Servers encode what they were sent, and decode it by halves. What is left of a secret in any of that are its letters and digits. */
function containsSecret(text: string, secret: string): boolean {
  const core = coreOf(secret);
  return core !== '' && [text, decoded(text), decoded(decoded(text))].some((form) => coreOf(form).includes(core));
}

function coreOf(text: string): string {
  return text.replace(/[^\p{L}\p{N}]/gu, '');
}

function decoded(text: string): string {
  return text.replace(/(%[0-9a-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString('utf8'));
}

/** There is no secret where one was expected: the message says where and why. */
export class SecretMissing extends Error {}

/** The secret in a file, without the newline that editors put behind it. Throws SecretMissing. */
export async function readSecret(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new SecretMissing(`${path}: ${describeFileError(error)}`, { cause: error });
  });
  const secret = text.replace(/\r?\n$/, '');
  if (secret === '') throw new SecretMissing(`${path} is empty`);
  return secret;
}
