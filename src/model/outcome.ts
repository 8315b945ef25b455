import { statusesText, successStatus } from './status.ts';

/** What is to be known of an outcome. `rank`: see `Cell`; Redis holds it, so it never becomes another number. */
type OutcomeFacts = ({ by: 'answer'; rank: number; inDoubt?: string } | { by: 'seal' | 'reading' }) & {
  isSuccess: boolean;
  isGone?: boolean;
  isAlwaysShown?: boolean;
  means: string;
};

/**
 * What finally happened to one row: every word a report can hold in its `outcome` column. Every row of a run gets exactly one. They are
 * shown in this order. All else follows from this table: cells and the scripts that join them, counters, summaries, files, schedules.
 *
 * by            what settles a row so: an answer to its request, the seal of a run that was not finished, or reading it; then it is never sent
 * rank          of those by an answer, from 1 to 7 without a gap: a higher one replaces a lower one
 * inDoubt       what it is called where another request for the id may have executed the delete: of a higher rank
 * isSuccess     a row that ends so needs nobody's attention
 * isGone        the object was gone without our own delete being confirmed
 * isAlwaysShown the progress of a run names it at 0, too
 * means         for people, behind the count
 */
const table = {
  deleted: {
    by: 'answer',
    rank: 5,
    isSuccess: true,
    isAlwaysShown: true,
    means: `the API confirmed it with ${successStatus}`,
  },
  absent: {
    by: 'answer',
    rank: 3,
    inDoubt: 'gone_unconfirmed',
    isSuccess: true,
    isGone: true,
    isAlwaysShown: true,
    means: `was not there: ${statusesText('gone')}`,
  },
  gone_unconfirmed: {
    by: 'answer',
    rank: 4,
    isSuccess: true,
    isGone: true,
    means: `gone, but not confirmed by our own ${successStatus}`,
  },
  failed: {
    by: 'answer',
    rank: 1,
    inDoubt: 'unknown',
    isSuccess: false,
    isAlwaysShown: true,
    means: 'rejected by the API; presumably still exists',
  },
  unknown: { by: 'answer', rank: 2, isSuccess: false, means: 'may have been executed; no definite answer came' },
  not_attempted: { by: 'seal', isSuccess: false, means: 'never sent' },
  rejected: { by: 'reading', isSuccess: false, means: 'not usable as an id; never sent' },
  duplicate: { by: 'reading', isSuccess: true, means: 'listed earlier; sent once' },
  protected: { by: 'reading', isSuccess: true, means: 'never sent, as --protect asks' },
} as const satisfies Record<string, OutcomeFacts>;

export type Outcome = keyof typeof table;

type SettledBy<By> = { [O in Outcome]: (typeof table)[O]['by'] extends By ? O : never }[Outcome];

/** What can become of an id by the answers to its requests. */
export type SentOutcome = SettledBy<'answer'>;

/** How a row can be settled while it is read; it is never sent. */
export type ReadOutcome = SettledBy<'reading'>;

const facts: Readonly<Record<Outcome, OutcomeFacts & { inDoubt?: SentOutcome }>> = table;

/** In the order in which they are shown. */
export const outcomes = Object.keys(table) as Outcome[];

/** Those of ids that were to be sent. */
export const idOutcomes = outcomes.filter((outcome) => facts[outcome].by !== 'reading');

/** In the order of their rank. */
export const sentOutcomes = outcomes.filter(isSent).sort((a, b) => rankOf(a) - rankOf(b));

function isSent(outcome: Outcome): outcome is SentOutcome {
  return facts[outcome].by === 'answer';
}

export function rankOf(outcome: SentOutcome): number {
  return table[outcome].rank;
}

/** What an outcome becomes where nobody can be sure whose request it was. */
export function inDoubt(outcome: SentOutcome): SentOutcome {
  return facts[outcome].inDoubt ?? outcome;
}

/** Whether an outcome is one that only doubt leads to. */
export function isUncertain(outcome: Outcome): boolean {
  return sentOutcomes.some((sure) => sure !== outcome && inDoubt(sure) === outcome);
}

/** Whether a row with this outcome needs nobody's attention. */
export function isSuccess(outcome: Outcome): boolean {
  return facts[outcome].isSuccess;
}

/** Whether requests were answered, and the object may still be there. `pending` is no outcome. */
export function isFailure(outcome: Outcome | 'pending'): outcome is SentOutcome {
  return outcome !== 'pending' && isSent(outcome) && !isSuccess(outcome);
}

/** Whether another run may do what this one did not. */
export function isWorthAnotherRun(outcome: Outcome | 'pending'): boolean {
  return outcome !== 'pending' && !isSuccess(outcome) && idOutcomes.includes(outcome);
}

export function isGone(outcome: Outcome): boolean {
  return facts[outcome].isGone === true;
}

export function isAlwaysShown(outcome: Outcome): boolean {
  return facts[outcome].isAlwaysShown === true;
}

/** For people: `was not there: 404 or 410`. */
export function outcomeText(outcome: Outcome): string {
  return facts[outcome].means;
}

/** How many rows had each outcome. */
export type OutcomeCounts = Record<Outcome, number>;

export function perOutcome<T>(make: (outcome: Outcome) => T): Record<Outcome, T> {
  return Object.fromEntries(outcomes.map((outcome) => [outcome, make(outcome)])) as Record<Outcome, T>;
}

/** How many rows had one of those outcomes; without a test, any. */
export function sumOutcomes(counts: Readonly<OutcomeCounts>, isCounted: (outcome: Outcome) => boolean = () => true) {
  return outcomes.reduce((sum, outcome) => sum + (isCounted(outcome) ? counts[outcome] : 0), 0);
}

/**
 * What decided a cell, as 9 bits: an HTTP status from 200 to 599 is stored as itself − 88 (112 … 511); below that stands
 * this table. It is append-only: numbers are in ledgers that outlive a release.
 */
const codeWords = [
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

/** The stable text of a code, as reports show it: `http_404`, `timeout`. A number of a later release reads `code_57`. */
export function textOfCode(code: number): string {
  if (code >= firstStatus) return `http_${code + shift}`;
  return codeWords[code] ?? `code_${code}`;
}
