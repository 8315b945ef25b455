/** What finally happened to one id that could be sent, in the order of their rank: a higher one replaces a lower one. */
export const sentOutcomes = ['failed', 'unknown', 'absent', 'gone_unconfirmed', 'deleted'] as const;
export type SentOutcome = (typeof sentOutcomes)[number];

/** How a row can be settled while it is read; it is never sent. */
export type ReadOutcome = 'rejected' | 'duplicate' | 'protected';

/** Every word a report can hold in its `outcome` column. Every row of a run gets exactly one. */
export const outcomes = [
  'deleted',
  'absent',
  'gone_unconfirmed',
  'failed',
  'unknown',
  'not_attempted',
  'rejected',
  'duplicate',
  'protected',
] as const;
export type Outcome = (typeof outcomes)[number];

const successes: readonly Outcome[] = ['deleted', 'absent', 'gone_unconfirmed', 'duplicate', 'protected'];

/** Whether a row with this outcome needs nobody's attention. */
export function isSuccess(outcome: Outcome): boolean {
  return successes.includes(outcome);
}

/**
 * What decided a cell, as 9 bits: an HTTP status from 200 to 599 is stored as itself − 88 (112 … 511); below that stands
 * this table. It is append-only: numbers are in ledgers that outlive a release.
 */
const words = [
  'none',
  'timeout', // no answer within the request's deadline
  'reset', // the connection broke after the request was written
  'protocol', // the answer was not HTTP
  'http_other', // a status outside 200 … 599
] as const;

/** A code that is not an HTTP status. */
export type CodeWord = (typeof words)[number];

const firstStatus = 112;
const shift = 88;

/** The 9-bit number of an HTTP status. */
export function codeOfStatus(status: number): number {
  return status >= 200 && status <= 599 ? status - shift : codeOfWord('http_other');
}

/** The 9-bit number of a word of the table. */
export function codeOfWord(word: CodeWord): number {
  return words.indexOf(word);
}

/** The HTTP status behind a code, or null. */
export function statusOfCode(code: number): number | null {
  return code >= firstStatus ? code + shift : null;
}

/** The stable text of a code, as reports show it: `http_404`, `timeout`. A number of a later release reads `code_57`. */
export function textOfCode(code: number): string {
  if (code >= firstStatus) return `http_${code + shift}`;
  return words[code] ?? `code_${code}`;
}
