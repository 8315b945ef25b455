import { ExpungeError } from '../errors.ts';
import type { Token } from './token.ts';

/** A token as one process lends it to another: the header, or null and why there is none now. In memory and on the channel between both only. */
export type TokenLoan = { header: string | null; waiting: string };

/** What the borrower tells the lender. */
export type TokenReport = { refused: string } | { accepted: string };

export function loanOf(token: Token): TokenLoan {
  return { header: token.authorization(), waiting: token.waiting };
}

/** Hands what a borrower reports on to the token that was lent. Returns the reason why the run must halt, or null. */
export function hearBorrower(token: Token, report: TokenReport): string | null {
  if ('accepted' in report) {
    if (report.accepted === token.authorization()) token.accepted();
    return null;
  }
  const verdict = token.refused(report.refused);
  return verdict === 'again' ? null : verdict.halt;
}

/**
 * The token of another process, which gets and replaces it. So the processes of one command cost one token, and never revoke each other's.
 * A header that the API refused is not sent again: the lender has another one soon, or halts the run.
 */
export class BorrowedToken implements Token {
  readonly refreshes = 0; // those of the lender count
  readonly failedRefreshes = 0;
  readonly lifeMs = null;
  readonly source = 'the command of the run';
  readonly #report: (report: TokenReport) => void;
  #loan: TokenLoan;
  #accepted = '';
  #refused = '';
  #refusedForGood: string | null = null;
  #changed: () => void = () => {};
  #failed: (reason: string) => void = () => {};

  constructor(loan: TokenLoan, report: (report: TokenReport) => void) {
    this.#loan = loan;
    this.#report = report;
  }

  /** Called with each loan. */
  receive(loan: TokenLoan): void {
    const before = this.authorization();
    this.#loan = loan;
    if (this.authorization() !== before) this.#changed();
  }

  /** The lender says that the credentials are refused for good. */
  refuseForGood(reason: string): void {
    this.#refusedForGood = reason;
    this.#failed(reason);
  }

  get waiting(): string {
    if (this.authorization() !== null) return '';
    return this.#refusedForGood ?? (this.#loan.waiting || 'the API refused the token (401), getting another');
  }

  authorization(): string | null {
    const { header } = this.#loan;
    return header === this.#refused || this.#refusedForGood !== null ? null : header;
  }

  refused(authorization: string): 'again' | { halt: string } {
    if (this.#refusedForGood !== null) return { halt: this.#refusedForGood };
    if (authorization !== this.authorization()) return 'again';
    this.#refused = authorization;
    this.#changed();
    this.#report({ refused: authorization });
    return 'again';
  }

  accepted(): void {
    const header = this.authorization();
    if (header === null || header === this.#accepted) return;
    this.#accepted = header;
    this.#report({ accepted: header });
  }

  async start(): Promise<void> {
    if (this.#refusedForGood !== null) throw new ExpungeError('CREDENTIALS', this.#refusedForGood);
  }

  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  onRefused(failed: (reason: string) => void): void {
    this.#failed = failed;
  }

  async close(): Promise<void> {}
}
