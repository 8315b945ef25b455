import { findStatusFacts, type StatusAction, statusActions } from './status.ts';
import { suggest } from './suggest.ts';

/** One status and its meaning instead of the default. */
export type StatusOverride = { status: number; word: StatusAction };

/**
 * Reads a text like `409=retry,404=failed`, sorted by status; '' gives none. Throws an Error that says what was expected. Rejects a rule that would
 * report a false success, wait for ever, or fail ids because of a token or a rate limit.
 */
export function parseOnStatus(text: string): StatusOverride[] {
  const overrides = text === '' ? [] : text.split(',').map((part) => readOne(part.trim()));
  overrides.sort((a, b) => a.status - b.status);
  const twice = overrides.find(({ status }, i) => status === overrides[i - 1]?.status);
  if (twice) throw new Error(`${twice.status} is given twice`);
  return overrides;
}

/** Writes the text that `parseOnStatus` reads; two texts with the same meaning become equal. */
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
  const { actions, why } = findStatusFacts(status);
  if (actions.includes(word)) return { status, word };
  const instead = actions.length === 0 ? '' : `; it can be ${actions.join(', ')}`;
  throw new Error(`${status} cannot be ${word}: ${why}${instead}`);
}

function isWord(word: string): word is StatusAction {
  return (statusActions as readonly string[]).includes(word);
}
