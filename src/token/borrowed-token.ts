import { ExpungeError } from '../errors.ts';
import type { Token, TokenRefusal } from './token.ts';
import { describeDoubt, TokenInUse } from './token-in-use.ts';

/**
 * A token that one process lends to another: the header, or null and the reason why there is none now. It is only in memory and on the channel
 * between both.
 */
export type TokenLoan = { header: string | null; waiting: string };

/** A report from the borrower to the lender. */
export type TokenReport = { refused: string; said: string } | { accepted: string };

/** The latest token. While it is in doubt, each borrower asks again with it on its own. */
export function loanOf(token: Token): TokenLoan {
  return { header: token.latest, waiting: token.waiting };
}

/** Passes a borrower's report on to the token that was lent. Returns the reason why the run must halt, or null. */
export function hearBorrower(token: Token, report: TokenReport): string | null {
  if ('accepted' in report) {
    token.accepted(report.accepted);
    return null;
  }
  const verdict = token.refused(report.refused, report.said);
  return typeof verdict === 'string' ? null : verdict.halt;
}

const reportEveryMs = 500;

/**
 * The token of another process, which gets and replaces it. So the processes of one command cost one token, and never revoke each other's.
 * Each judges by its own answers whether the header works. Only the lender, who hears of all answers, decides that the run must halt.
 */
export class BorrowedToken implements Token {
  readonly refreshes = 0; // the lender's refreshes count
  readonly failedRefreshes = 0;
  readonly lifeMs = null;
  readonly source = 'the command of the run';
  readonly #report: (report: TokenReport) => void;
  readonly #clock: () => number;
  readonly #inUse: TokenInUse;
  #waiting: string;
  #said = '';
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #refusedForGood: string | null = null;
  #changed: () => void = () => {};
  #failed: (reason: string) => void = () => {};

  /** `clock`: monotonic ms. */
  constructor(loan: TokenLoan, report: (report: TokenReport) => void, clock = () => performance.now()) {
    this.#report = report;
    this.#clock = clock;
    this.#inUse = new TokenInUse(clock);
    this.#waiting = loan.waiting;
    this.#take(loan);
  }

  /** Takes a loan. Called with each loan. */
  receive(loan: TokenLoan): void {
    const before = this.authorization();
    this.#waiting = loan.waiting;
    this.#take(loan);
    if (this.authorization() !== before) this.#changed();
  }

  #take({ header }: TokenLoan): void {
    if (header === null) this.#inUse.clear();
    else if (header !== this.#inUse.latest) {
      this.#inUse.adopt(header);
      this.#reportedAtMs = Number.NEGATIVE_INFINITY;
    }
  }

  /** Notes that the lender reports that the credentials are refused for good. */
  refuseForGood(reason: string): void {
    this.#refusedForGood = reason;
    this.#failed(reason);
  }

  get latest(): string | null {
    return this.#refusedForGood === null ? this.#inUse.latest : null;
  }

  get waiting(): string {
    if (this.authorization() !== null) return '';
    return this.#refusedForGood ?? (this.#waiting || describeDoubt(this.#inUse, this.#said));
  }

  authorization(): string | null {
    return this.#refusedForGood === null ? this.#inUse.authorization() : null;
  }

  sent(authorization: string): void {
    this.#inUse.sent(authorization);
  }

  refused(authorization: string, said: string): TokenRefusal {
    if (this.#refusedForGood !== null) return { halt: this.#refusedForGood };
    const refusal = this.#inUse.refused(authorization);
    if (refusal === 'elsewhere') return refusal;
    if (authorization === this.#inUse.latest) {
      this.#said = said;
      this.#report({ refused: authorization, said });
    }
    if (this.authorization() === null) this.#changed();
    return 'again';
  }

  /** Reports at most twice a second, so that the lender knows that a header works here which it may see refused. */
  accepted(authorization: string): void {
    const isBack = this.#inUse.accepted(authorization);
    if (isBack) this.#changed();
    if (!isBack && this.#clock() - this.#reportedAtMs < reportEveryMs) return;
    this.#reportedAtMs = this.#clock();
    this.#report({ accepted: authorization });
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
