import { suggest } from './suggest.ts';

/** What `--on-status` can make of a status. Never `deleted`: only a 204 proves that. */
export const statusActions = ['failed', 'absent', 'retry', 'wait', 'halt'] as const;
export type StatusAction = (typeof statusActions)[number];

/** One status and what it means instead of the default. */
export type StatusOverride = { status: number; word: StatusAction };

/** Whether a request with this answer may have been executed: another 2xx, a 408, any 5xx but "I don't know how" (501, 505). */
export function isAmbiguous(status: number): boolean {
  if (status === 501 || status === 505) return false;
  return (status >= 200 && status < 300 && status !== 204) || status === 408 || status >= 500;
}

/**
 * Reads a text like `409=retry,404=failed`, sorted by status; '' gives none. Throws an Error that says what was expected. It rejects
 * what would report a success that is none, wait for ever, or fail ids because of a token or a rate limit.
 */
export function parseOnStatus(text: string): StatusOverride[] {
  const overrides = text === '' ? [] : text.split(',').map((part) => readOne(part.trim()));
  overrides.sort((a, b) => a.status - b.status);
  const twice = overrides.find(({ status }, i) => status === overrides[i - 1]?.status);
  if (twice) throw new Error(`${twice.status} is given twice`);
  return overrides;
}

/** The inverse of `parseOnStatus`: two texts with the same meaning become equal. */
export function formatOnStatus(overrides: readonly StatusOverride[]): string {
  return overrides.map(({ status, word }) => `${status}=${word}`).join(',');
}

function readOne(part: string): StatusOverride {
  const [left = '', word, ...rest] = part.split('=');
  if (!/^[2-5]\d\d$/.test(left) || word === undefined || rest.length > 0) {
    throw new Error(`expected a status from 200 to 599 and what it means, like 409=retry, got "${part}"`);
  }
  if (!isWord(word)) {
    throw new Error(`${left}: "${word}" is not one of ${statusActions.join(', ')}.${suggest(word, statusActions)}`);
  }
  const status = Number(left);
  const allowed = allowedFor(status);
  if (allowed.words.includes(word)) return { status, word };
  const instead = allowed.words.length === 0 ? '' : `; it can be ${allowed.words.join(', ')}`;
  throw new Error(`${status} cannot be ${word}: ${allowed.why}${instead}`);
}

function isWord(word: string): word is StatusAction {
  return (statusActions as readonly string[]).includes(word);
}

type Allowed = { words: readonly StatusAction[]; why: string };

function allowedFor(status: number): Allowed {
  const of = (why: string, ...words: StatusAction[]) => ({ words, why });
  if (status === 204) return of('it is the one answer that says deleted');
  if (status === 401) return of('it speaks about the token, not about the id', 'halt');
  if (status === 429) return of('no id is lost to a rate limit', 'wait', 'halt');
  if (status === 404 || status === 410) return of('waiting would never end', 'failed', 'absent', 'retry', 'halt');
  if (status < 300) return of('it may have been executed, and nothing says that it was', 'failed', 'retry', 'halt');
  if (status < 400) return of('a redirect says nothing about the id', 'failed', 'retry', 'halt');
  if (status === 408 || status >= 500)
    return of('it says nothing about whether the object is there', 'failed', 'retry', 'wait', 'halt');
  return of('', ...statusActions);
}
