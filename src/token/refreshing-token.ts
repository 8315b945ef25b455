import { ExpungeError } from '../errors.ts';
import {
  afterRefusal,
  afterReplacement,
  describeRefusals,
  leastWaitMs,
  noRefusals,
  type RefusalHistory,
  refreshAfterMs,
  retryDelayMs,
  shouldGiveUp,
} from './refusals.ts';
import type { IssueResult, Issuer, Token } from './token.ts';

type RefreshingOptions = {
  /** Monotonic ms, so that a change of the clock has no effect. */
  clock: () => number;
  /** From 0 to 1. */
  random: () => number;
};

/** One generation of the token. */
type Generation = {
  header: string;
  issuedAtMs: number;
  lifeMs: number; // assumed if it is unknown
  isLifeKnown: boolean;
  hasWorked: boolean;
  isRefused: boolean;
};

const fresh = { lifeMs: 0, isLifeKnown: false, hasWorked: false, isRefused: false };

type Issued = Extract<IssueResult, { kind: 'issued' }>;

const sameTokenAtMost = 3;

/**
 * A token that is replaced before it expires, and when the API refuses it. States: none → requested → held, while the next one is requested
 * in the background and the old one stays in use → …, or refused for good, which only `start` ends.
 *
 * Single flight by generation: only the first refusal of the held header requests another token, and never while one is requested. So a
 * thousand requests that are refused together cost one token, and those refused later with the old header cost none.
 */
export class RefreshingToken implements Token {
  readonly #issuer: Issuer;
  readonly #options: RefreshingOptions;
  readonly #closing = new AbortController();
  #latest: Generation | null = null;
  #usable: Generation | null = null; // the latest, as long as it is neither refused nor expired
  #pending: Promise<void> | null = null;
  #askTimer: NodeJS.Timeout | undefined;
  #askAtMs = 0;
  #expiryTimer: NodeJS.Timeout | undefined;
  #lastError = ''; // of the last request
  #failures = 0; // in a row
  #failedRefreshes = 0;
  #sameAgain = 0; // times in a row that the issuer gave the refused token
  #issued = 0;
  #refusalHistory: RefusalHistory = noRefusals;
  #isStarting = false; // then `start` throws what is refused for good
  #refusedForGood: string | null = null;
  #changed: () => void = () => {};
  #failed: (reason: string) => void = () => {};

  constructor(issuer: Issuer, options: RefreshingOptions) {
    this.#issuer = issuer;
    this.#options = options;
  }

  get source(): string {
    return this.#issuer.source;
  }

  get refreshes(): number {
    return Math.max(0, this.#issued - 1);
  }

  get failedRefreshes(): number {
    return this.#failedRefreshes;
  }

  get lifeMs(): number | null {
    return this.#latest?.isLifeKnown ? this.#latest.lifeMs : null;
  }

  get waiting(): string {
    if (this.#usable !== null) return '';
    if (this.#refusedForGood !== null) return this.#refusedForGood;
    const why = this.#lastError || `getting a token from ${this.source}`;
    const seconds = Math.ceil((this.#askAtMs - this.#options.clock()) / 1_000);
    return this.#pending === null && seconds > 0 ? `${why}; trying again in ${seconds} s` : why;
  }

  authorization(): string | null {
    return this.#usable?.header ?? null;
  }

  accepted(): void {
    if (this.#usable !== null) this.#usable.hasWorked = true;
  }

  async start(): Promise<void> {
    this.#refusedForGood = null;
    if (this.#usable !== null) return;
    this.#isStarting = true;
    await this.#request();
    this.#isStarting = false;
    if (this.#refusedForGood !== null) throw new ExpungeError('CREDENTIALS', this.#refusedForGood);
  }

  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  onRefused(failed: (reason: string) => void): void {
    this.#failed = failed;
  }

  refused(authorization: string): 'again' | { halt: string } {
    if (this.#refusedForGood !== null) return { halt: this.#refusedForGood };
    const held = this.#latest;
    // Sent with an older token, or refused together with others: the first refusal has requested a new one.
    if (held === null || held.isRefused || authorization !== held.header) return 'again';
    const { lifeMs, issuedAtMs, hasWorked } = held;
    const isBeingReplaced = this.#isBeingReplaced;
    const ageMs = this.#options.clock() - issuedAtMs;
    held.isRefused = true;
    this.#refusalHistory = afterRefusal(this.#refusalHistory, { ageMs, lifeMs, isBeingReplaced });
    const words = describeRefusals(hasWorked);
    if (shouldGiveUp(this.#refusalHistory)) return { halt: this.#giveUp(words) };
    this.#lastError ||= 'the API refused the token (401), getting another';
    this.#withdraw();
    // Two processes that revoke each other's tokens get them refused within a second: this slows that down.
    if (!isBeingReplaced) this.#requestIn(leastWaitMs - ageMs);
    return 'again';
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#askTimer);
    clearTimeout(this.#expiryTimer);
    await this.#pending;
  }

  /** Whether a newer token is requested, or the last request failed. */
  get #isBeingReplaced(): boolean {
    return this.#pending !== null || this.#failures > 0;
  }

  /** Requests one token, however often it is called meanwhile. */
  #request(): Promise<void> {
    clearTimeout(this.#askTimer);
    this.#pending ??= this.#issuer.issue(this.#closing.signal).then((end) => {
      this.#pending = null;
      if (!this.#closing.signal.aborted) this.#receive(end);
    });
    return this.#pending;
  }

  #requestIn(ms: number): void {
    clearTimeout(this.#askTimer);
    if (this.#closing.signal.aborted) return;
    this.#askAtMs = this.#options.clock() + ms;
    if (ms <= 0) void this.#request();
    else this.#askTimer = setTimeout(() => void this.#request(), ms).unref();
  }

  #receive(end: IssueResult): void {
    if (end.kind === 'issued' && !this.#isRefused(end)) {
      this.#adopt(end);
      return;
    }
    this.#failedRefreshes++;
    if (end.kind === 'issued') this.#tryWithoutTheSame();
    else if (end.kind === 'refused') this.#giveUp(end.reason);
    else this.#tryLater(end.reason, end.askedMs);
  }

  /** Whether the issuer gave the token that the API has refused. */
  #isRefused({ header }: Issued): boolean {
    return this.#latest?.header === header && this.#latest.isRefused;
  }

  #adopt({ header, lifeMs }: Issued): void {
    const before = this.#latest;
    const isSame = before?.header === header;
    if (before !== null && !before.isRefused) this.#refusalHistory = afterReplacement(this.#refusalHistory);
    const now = this.#options.clock();
    // Servers and commands with a cache may give the same token twice: its age then continues.
    const held = isSame ? before : { header, issuedAtMs: now, ...fresh };
    held.lifeMs = now - held.issuedAtMs + (lifeMs ?? this.#refusalHistory.lifeMs);
    held.isLifeKnown = lifeMs !== null;
    [this.#latest, this.#usable, this.#lastError] = [held, held, ''];
    [this.#failures, this.#sameAgain] = [0, 0];
    if (!isSame) this.#issued++;
    this.#requestIn(refreshAfterMs(lifeMs ?? this.#refusalHistory.lifeMs, this.#options.random()));
    this.#expireIn(lifeMs);
    this.#changed();
  }

  #tryWithoutTheSame(): void {
    const reason = `${this.source} keeps giving the token that the API refused (401)`;
    if (++this.#sameAgain >= sameTokenAtMost) this.#giveUp(reason);
    else this.#tryLater(reason, null);
  }

  #tryLater(reason: string, askedMs: number | null): void {
    this.#lastError = reason;
    this.#requestIn(retryDelayMs(this.#failures++, askedMs, this.#options.random()));
  }

  /** A token is not sent after its known life, which would only give a 401. Others are sent until the API refuses them. */
  #expireIn(lifeMs: number | null): void {
    clearTimeout(this.#expiryTimer);
    if (lifeMs === null) return;
    this.#expiryTimer = setTimeout(() => {
      this.#lastError ||= 'the token has expired, getting another';
      this.#withdraw();
    }, lifeMs).unref();
  }

  #withdraw(): void {
    clearTimeout(this.#expiryTimer);
    this.#usable = null;
    this.#changed();
  }

  #giveUp(reason: string): string {
    clearTimeout(this.#askTimer);
    this.#refusedForGood = reason;
    this.#refusalHistory = noRefusals;
    this.#failures = 0;
    this.#sameAgain = 0;
    this.#withdraw();
    if (!this.#isStarting) this.#failed(reason);
    return reason;
  }
}
