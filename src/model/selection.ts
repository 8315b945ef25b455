import { codeWords, idOutcomes, isGone, isWorthAnotherRun, type Outcome, outcomes } from './outcome.ts';
import { rejectCodes } from './row.ts';
import { suggest } from './suggest.ts';

/** A choice of rows by words of `outcome` or `code` in a report: a row with any of them is chosen. Never empty. */
export type Selection = readonly string[];

/** The code of ids that a cancelled run left without an outcome. */
export const cancelCode = 'run_cancelled';

const words = new Set<string>([...outcomes, 'pending', ...codeWords, cancelCode, ...rejectCodes]);

/** The words that can be chosen, in addition to `http_404` and other statuses. */
export const selectionWords: readonly string[] = [...words];

/** Reads the words of `failed,http_409`. Throws an Error for a word that no row of any report has. */
export function parseSelection(text: string): Selection {
  return [...new Set(text.split(',').map((word) => parseWord(word.trim())))];
}

function parseWord(word: string): string {
  if (words.has(word) || /^http_[2-5]\d\d$/.test(word)) return word;
  const expected = `expected outcomes like ${outcomes.slice(3, 6).join(', ')}, or codes like http_409, timeout`;
  if (word === '') throw new Error(`${expected}, got nothing`);
  throw new Error(
    `${expected}, got "${word}".${/^[2-5]\d\d$/.test(word) ? ` Did you mean http_${word}?` : hint(word)}`,
  );
}

function hint(word: string): string {
  return suggest(word, selectionWords);
}

/** Whether a row with this outcome and code is chosen. */
export function isChosen(selection: Selection, row: { outcome: Outcome | 'pending'; code: string }): boolean {
  return selection.includes(row.outcome) || selection.includes(row.code);
}

const retriable = idOutcomes.filter(isWorthAnotherRun);

/** Outcomes that `retry` sends again only if they are named: the API may have said "gone" without looking. It never sends again after a 204. */
const distrusted = idOutcomes.filter(isGone);

/** Whether `retry` sends a row again. A code chooses no row that was gone: a 404 can also be the last answer for a row that was not gone. */
export function isChosenToRetry(selection: Selection, row: { outcome: Outcome | 'pending'; code: string }): boolean {
  if (isWorthAnotherRun(row.outcome)) return isChosen(selection, row);
  return distrusted.some((outcome) => outcome === row.outcome && selection.includes(outcome));
}

/** The rows that `retry` sends again by default: all rows worth another run. */
export const worthRetry: Selection = retriable;

/** The words that `retry` can choose, in addition to statuses. */
export const retryWords: readonly string[] = [...retriable, ...distrusted, ...codeWords, cancelCode];

/** Reads the words for `retry`. Also throws an Error for words of rows that are never sent, or never again. */
export function parseRetrySelection(text: string): Selection {
  const selection = parseSelection(text);
  const wrong = selection.find((word) => !retryWords.includes(word) && !word.startsWith('http_'));
  if (wrong === undefined) return selection;
  throw new Error(
    `"${wrong}" rows can't be retried; expected ${[...retriable, ...distrusted].join(', ')}, or codes like http_409, timeout`,
  );
}
