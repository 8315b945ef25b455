import { readFile } from 'node:fs/promises';
import { bareText } from '../errors.ts';
import { describeFileError } from '../system-errors.ts';
import { readTokenFile, readTokenVariable } from './bearer-token.ts';
import { GivenToken } from './given-token.ts';
import type { Token } from './token.ts';

/** A token that never changes, from the variable `source`. Throws CREDENTIALS for text that is not a token. `clock`: monotonic ms. */
export function fixedToken(token: string, source: string, clock = () => performance.now()): Token {
  const header = readTokenVariable(source, token);
  return new GivenToken(source, () => header, clock);
}

/**
 * The token in a file, which is read again a second after it was last read, so that a rotated token is used before the old one is refused. Throws
 * CREDENTIALS if the file holds no token at first. Later the old token stays while the file holds none. `clock`: monotonic ms.
 */
export function tokenFile(path: string, clock: () => number): Token {
  return new GivenToken(`the file ${path}`, () => readTokenFile('--token-file', path), clock);
}

/** Thrown if a secret is missing; the message says where and why. */
export class SecretMissing extends Error {}

/** Reads the `bareText` of a file with a secret. Throws SecretMissing. */
export async function readSecret(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new SecretMissing(`${path}: ${describeFileError(error)}`, { cause: error });
  });
  const secret = bareText(text);
  if (secret === '') throw new SecretMissing(`${path} is empty`);
  return secret;
}

const maxCharacters = 200;

/**
 * Makes untrusted text safe to show: one line of at most 200 characters, without these secrets in any form they were sent in, and without text that
 * looks like a secret. It masks too much rather than too little.
 */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  const masked = secrets.reduce(withoutSecret, text.replace(/[\p{C}\s]+/gu, ' ').trim());
  if (secrets.some((secret) => containsSecret(masked, secret))) return '(not shown, it holds a secret)';
  return masked
    .replace(/(bearer|basic)\s+\S+/gi, '$1 ***')
    .replace(/(token|secret|password|key)(["']?\s*[=:]\s*)\S+/gi, '$1$2***')
    .replace(/[\w.~+-]{24,}=*/g, (word) => (/\d/.test(word) ? '***' : word))
    .slice(0, maxCharacters);
}

/** The text with `***` in place of the secret, in any form that programs give it. */
export function withoutSecret(text: string, secret: string): string {
  return formsOf(secret).reduce((masked, form) => masked.replaceAll(form, '***'), text);
}

/** The forms of a secret: unchanged, encoded for a URL or a form, and in the JSON of programs that escape slashes. */
function formsOf(secret: string): string[] {
  if (secret === '') return [];
  const inForm = new URLSearchParams({ s: secret }).toString().slice(2);
  return [secret, encodeURIComponent(secret), inForm, secret.replaceAll('/', '\\/')];
}

/** Whether text holds a secret, even if a server partly encoded or decoded it: compares letters and digits only. */
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
