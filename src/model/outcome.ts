/** The facts about an outcome. `rank`: see `Cell`; Redis stores it, so another one needs a new `schemaVersion`. */
type OutcomeFacts = ({ by: 'answer'; rank: number; inDoubt?: string } | { by: 'finalization' | 'reading' }) & {
  isSuccess: boolean;
  isGone?: boolean;
  isAlwaysShown?: boolean;
  means: string;
};

/**
 * The final result of one row: every value of the `outcome` column of a report, in the order in which they are shown. Every row of a run gets exactly
 * one. Cells and the scripts that merge them, counters, summaries, files and schedules follow from this table.
 *
 * by            what settles the row: an answer to its request, the end of an unfinished run, when it is finalized, or reading, in which case it is never
 * sent rank          for outcomes by an answer: from 1, at most 7, without a gap. A higher rank replaces a lower one, so that a success replaces
 *               every failure and nothing replaces `deleted`
 * inDoubt       the outcome instead, of a higher rank, if another request for the id may have executed the delete
 * isSuccess     the row needs no attention
 * isGone        the object was gone without our own delete being confirmed
 * isAlwaysShown the progress of a run shows it even at 0
 * means         for people, after the count
 */
const table = {
  deleted: {
    by: 'answer',
    rank: 5,
    isSuccess: true,
    isAlwaysShown: true,
    means: 'the API confirmed it',
  },
  absent: {
    by: 'answer',
    rank: 3,
    inDoubt: 'gone_unconfirmed',
    isSuccess: true,
    isGone: true,
    isAlwaysShown: true,
    means: 'not there at our first request',
  },
  gone_unconfirmed: {
    by: 'answer',
    rank: 4,
    isSuccess: true,
    isGone: true,
    means: 'gone, but not confirmed to us',
  },
  failed: {
    by: 'answer',
    rank: 1,
    inDoubt: 'unknown',
    isSuccess: false,
    isAlwaysShown: true,
    means: 'rejected by the API; presumably still exists',
  },
  unknown: { by: 'answer', rank: 2, isSuccess: false, means: 'no answer shows whether it is gone' },
  not_attempted: { by: 'finalization', isSuccess: false, means: 'never sent' },
  rejected: { by: 'reading', isSuccess: false, means: 'not usable as an id; never sent' },
  duplicate: { by: 'reading', isSuccess: true, means: 'listed earlier; sent once' },
  protected: { by: 'reading', isSuccess: true, means: 'never sent, as --protect asks' },
} as const satisfies Record<string, OutcomeFacts>;

export type Outcome = keyof typeof table;

type SettledBy<By> = { [O in Outcome]: (typeof table)[O]['by'] extends By ? O : never }[Outcome];

/** The outcomes of ids that were sent. */
export type SentOutcome = SettledBy<'answer'>;

/** The outcomes of rows that are settled while reading; they are never sent. */
export type ReadOutcome = SettledBy<'reading'>;

const facts: Readonly<Record<Outcome, OutcomeFacts & { inDoubt?: SentOutcome }>> = table;

/** The outcomes in the order in which they are shown. */
export const outcomes = Object.keys(table) as Outcome[];

/** The outcomes of ids, without the outcomes of rows settled while reading. */
export const idOutcomes = outcomes.filter((outcome) => facts[outcome].by !== 'reading');

/** The outcomes of ids that were sent, by rank. */
export const sentOutcomes = outcomes.filter(isSent).sort((a, b) => rankOf(a) - rankOf(b));

function isSent(outcome: Outcome): outcome is SentOutcome {
  return facts[outcome].by === 'answer';
}

export function rankOf(outcome: SentOutcome): number {
  return table[outcome].rank;
}

/** The outcome instead, if another request for the id may have executed the delete. */
export function inDoubt(outcome: SentOutcome): SentOutcome {
  return facts[outcome].inDoubt ?? outcome;
}

/** Whether another outcome becomes this one in doubt. */
export function isUncertain(outcome: Outcome): boolean {
  return sentOutcomes.some((sure) => sure !== outcome && inDoubt(sure) === outcome);
}

/** Whether a row with this outcome needs no attention. */
export function isSuccess(outcome: Outcome): boolean {
  return facts[outcome].isSuccess;
}

/** Whether the id was sent and the object may still exist. False for `pending`, which is not an outcome. */
export function isFailure(outcome: Outcome | 'pending'): outcome is SentOutcome {
  return outcome !== 'pending' && isSent(outcome) && !isSuccess(outcome);
}

/** Whether the answer is kept as an excerpt: true for every sent outcome but a success that the API confirmed. False for `pending`. */
export function hasExcerpt(outcome: Outcome | 'pending'): boolean {
  return outcome !== 'pending' && isSent(outcome) && (!isSuccess(outcome) || isGone(outcome));
}

/** Whether another run may still delete the object. */
export function isWorthAnotherRun(outcome: Outcome | 'pending'): boolean {
  return outcome !== 'pending' && !isSuccess(outcome) && idOutcomes.includes(outcome);
}

/** Whether the id was never sent, because its run ended first. */
export function isLeft(outcome: Outcome): boolean {
  return facts[outcome].by === 'finalization';
}

export function isGone(outcome: Outcome): boolean {
  return facts[outcome].isGone === true;
}

export function isAlwaysShown(outcome: Outcome): boolean {
  return facts[outcome].isAlwaysShown === true;
}

/** The outcome in words: `not there at our first request`. */
export function outcomeText(outcome: Outcome): string {
  return facts[outcome].means;
}

/** The number of rows with each outcome. */
export type OutcomeCounts = Record<Outcome, number>;

export function perOutcome<T>(make: (outcome: Outcome) => T): Record<Outcome, T> {
  return Object.fromEntries(outcomes.map((outcome) => [outcome, make(outcome)])) as Record<Outcome, T>;
}

/** The number of rows with a counted outcome; by default every outcome is counted. */
export function sumOutcomes(counts: Readonly<OutcomeCounts>, isCounted: (outcome: Outcome) => boolean = () => true) {
  return outcomes.reduce((sum, outcome) => sum + (isCounted(outcome) ? counts[outcome] : 0), 0);
}

/**
 * What decided a cell, as 9 bits. An HTTP status from 200 to 599 is stored as itself − 88 (112 … 511); lower numbers are indexes of this table.
 * Append only: the numbers are in ledgers that outlive a version of expunge.
 */
export const codeWords = [
  'none',
  'timeout', // no answer within the request's deadline
  'reset', // the connection broke after the request was written
  'protocol', // the answer was not HTTP
  'http_other', // a status outside 200 … 599
] as const;

/** A code that is not an HTTP status. */
export type CodeWord = (typeof codeWords)[number];

const firstStatus = 112;
const shift = 88;

/** The 9-bit number of an HTTP status. */
export function codeOfStatus(status: number): number {
  return status >= 200 && status <= 599 ? status - shift : codeOfWord('http_other');
}

/** The 9-bit number of a word of the table. */
export function codeOfWord(word: CodeWord): number {
  return codeWords.indexOf(word);
}

/** The HTTP status behind a code, or null. */
export function statusOfCode(code: number): number | null {
  return code >= firstStatus ? code + shift : null;
}

/** The stable text of a code, as reports show it: `http_404`, `timeout`. A number from a later version reads `code_57`. */
export function textOfCode(code: number): string {
  if (code >= firstStatus) return `http_${code + shift}`;
  return codeWords[code] ?? `code_${code}`;
}
