import type { Token, TokenRefusal } from './token.ts';
import { describeAccepted, describeDoubt, refusedWords, TokenInUse } from './token-in-use.ts';

const readAgainAfterMs = 1_000;

/**
 * A token that comes from outside, where it may be replaced. It is read again a second after it was last read, and never requested. States: in use →
 * refused for good, which another token or `start` ends.
 */
export class GivenToken implements Token {
  readonly source: string;
  readonly failedRefreshes = 0;
  readonly lifeMs = null;
  readonly #read: () => string;
  readonly #clock: () => number;
  readonly #inUse: TokenInUse;
  #header: string;
  #readAtMs: number;
  #refreshes = 0;
  #said = '';
  #refusedForGood: string | null = null;
  #changed: () => void = () => {};
  #failed: (reason: string) => void = () => {};

  /** `read` gives the header. Throws what `read` throws; later the last header stays if it throws. `clock`: monotonic ms. */
  constructor(source: string, read: () => string, clock: () => number) {
    this.source = source;
    this.#read = read;
    this.#clock = clock;
    this.#inUse = new TokenInUse(clock);
    this.#header = read();
    this.#readAtMs = clock();
    this.#inUse.adopt(this.#header);
  }

  get refreshes(): number {
    return this.#refreshes;
  }

  get waiting(): string {
    if (this.authorization() !== null) return '';
    return this.#refusedForGood ?? describeDoubt(this.#inUse, this.#said);
  }

  authorization(): string | null {
    this.#readAgain();
    return this.#inUse.authorization();
  }

  sent(authorization: string): void {
    this.#inUse.sent(authorization);
  }

  workedAtMs(authorization: string): number {
    return this.#inUse.workedAtMs(authorization);
  }

  accepted(authorization: string, sentAtMs: number): void {
    if (this.#inUse.noteAccepted(authorization, sentAtMs)) this.#changed();
  }

  refused(authorization: string, said: string): TokenRefusal {
    this.#readAgain();
    if (this.#refusedForGood !== null) return { halt: this.#refusedForGood };
    const refusal = this.#inUse.refused(authorization);
    if (refusal === 'elsewhere') return refusal;
    if (authorization === this.#header) this.#said = said;
    return refusal === 'dead' ? this.#bury() : 'again';
  }

  async start(): Promise<void> {
    if (this.#refusedForGood === null) return;
    this.#refusedForGood = null;
    this.#inUse.adopt(this.#header);
  }

  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  onRefused(failed: (reason: string) => void): void {
    this.#failed = failed;
  }

  async close(): Promise<void> {}

  /** Buries a new token: none of its requests got through. The previous token continues if it still works. */
  #bury(): TokenRefusal {
    const isLast = !this.#inUse.hasBefore;
    const { accepted } = this.#inUse;
    this.#inUse.dropLatest();
    if (!isLast) return 'again';
    this.#refusedForGood = `${refusedWords(`the token from ${this.source}`, this.#said)}${describeAccepted(accepted)}`;
    this.#failed(this.#refusedForGood);
    return { halt: this.#refusedForGood };
  }

  #readAgain(): void {
    if (this.#clock() - this.#readAtMs < readAgainAfterMs) return;
    this.#readAtMs = this.#clock();
    const header = this.#tryToRead();
    if (header === this.#header) return;
    this.#header = header;
    this.#refreshes++;
    this.#refusedForGood = null;
    this.#inUse.adopt(header);
  }

  #tryToRead(): string {
    try {
      return this.#read();
    } catch {
      return this.#header; // a replacement may be in progress
    }
  }
}
