import { ExpungeError } from '../errors.ts';
import {
  afterRecovery,
  afterRefusal,
  afterReplacement,
  describeRefusals,
  isHopeless,
  minWaitMs,
  noRefusals,
  type RefusalHistory,
  type RefusedToken,
  refreshAfterMs,
  retryDelayMs,
  shouldGiveUp,
} from './refusals.ts';
import type { IssueResult, Issuer, Token, TokenRefusal } from './token.ts';
import { describeDoubt, refusedWords, TokenInUse } from './token-in-use.ts';

type RefreshingOptions = {
  /** Monotonic ms, so that a change of the clock has no effect. */
  clock: () => number;
  /** Returns a number from 0 to 1. */
  random: () => number;
};

/** One generation of the token. */
type Generation = {
  header: string;
  issuedAtMs: number;
  lifeMs: number; // assumed if unknown
  isLifeKnown: boolean;
  /** The first refusal since a request got through with it; null: there was none. */
  refusal: RefusedToken | null;
  isDead: boolean;
};

type Issued = Extract<IssueResult, { kind: 'issued' }>;

const maxSameToken = 3;

const youngMs = 10_000;
/** The time that the last token has to prove that it works before giving up, in ms. */
const lastChanceMs = 10_000;
/** The time in ms for which a young token that never worked is asked again, not replaced: the next one would be just as young. */
const maxLateMs = 5_500;

/**
 * A token that is replaced before it expires, and when the API refuses it. States: none → requested → held, while the next one is requested in the
 * background and the old one stays in use → …, or refused for good, which only `start` ends.
 *
 * Single flight by generation: another token is requested only when the held one is refused again, and never while a request for one is under way. So
 * a thousand requests that are refused together cost one token, and requests that are refused later with the old header cost none.
 */
export class RefreshingToken implements Token {
  readonly #issuer: Issuer;
  readonly #options: RefreshingOptions;
  readonly #closing = new AbortController();
  readonly #inUse: TokenInUse;
  #held: Generation | null = null; // the latest token
  #pending: Promise<void> | null = null;
  #askTimer: NodeJS.Timeout | undefined;
  #askAtMs = 0;
  #said = ''; // the answer that refused the held token, in words
  #lastError = ''; // error of the last request
  #failures = 0; // number in a row
  #failedRefreshes = 0;
  #sameAgain = 0; // number of times in a row that the issuer gave the refused token
  #issued = 0;
  #refusalHistory: RefusalHistory = noRefusals;
  #isStarting = false; // if so, `start` throws a refusal for good
  #refusedForGood: string | null = null;
  #changed: () => void = () => {};
  #failed: (reason: string) => void = () => {};

  constructor(issuer: Issuer, options: RefreshingOptions) {
    this.#issuer = issuer;
    this.#options = options;
    this.#inUse = new TokenInUse(options.clock);
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
    return this.#held?.isLifeKnown ? this.#held.lifeMs : null;
  }

  get waiting(): string {
    if (this.authorization() !== null) return '';
    if (this.#refusedForGood !== null) return this.#refusedForGood;
    if (this.#inUse.latest !== null && this.#lastError === '') return describeDoubt(this.#inUse, this.#said);
    const hasExpired = this.#held !== null && this.#inUse.latest === null;
    const why =
      this.#lastError ||
      (hasExpired ? 'the token has expired, getting another' : `getting a token from ${this.source}`);
    const seconds = Math.ceil((this.#askAtMs - this.#options.clock()) / 1_000);
    return this.#pending === null && seconds > 0 ? `${why}; trying again in ${seconds} s` : why;
  }

  authorization(): string | null {
    return this.#inUse.authorization();
  }

  sent(authorization: string): void {
    this.#inUse.sent(authorization);
  }

  workedAtMs(authorization: string): number {
    return this.#inUse.workedAtMs(authorization);
  }

  accepted(authorization: string, sentAtMs: number): void {
    const isBack = this.#inUse.noteAccepted(authorization, sentAtMs);
    const held = this.#held;
    if (held !== null && held.refusal !== null && authorization === held.header) {
      held.refusal = null;
      if (isBack) this.#recover(held);
    }
    if (isBack) this.#changed();
  }

  async start(): Promise<void> {
    this.#refusedForGood = null;
    if (this.#inUse.latest !== null) return;
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

  refused(authorization: string, said: string): TokenRefusal {
    if (this.#refusedForGood !== null) return { halt: this.#refusedForGood };
    const refusal = this.#inUse.refused(authorization);
    const held = this.#held;
    if (held === null || authorization !== held.header) return refusal === 'elsewhere' ? refusal : 'again';
    this.#said = said;
    const { lifeMs } = held;
    held.refusal ??= { ageMs: this.#ageOf(held), lifeMs, isBeingReplaced: this.#isBeingReplaced };
    if (refusal === 'elsewhere') return refusal;
    if (refusal === 'dead' || this.#isHopeless(held.refusal)) return this.#bury(held.refusal);
    if (this.#shouldReplace(held.refusal)) this.#replace(this.#ageOf(held));
    return 'again';
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#askTimer);
    await this.#pending;
  }

  /** Whether tokens follow one another that are each refused, and that expire before anything proves them dead. */
  #isHopeless(refusal: RefusedToken): boolean {
    return this.#inUse.isRefusedAgain && isHopeless(afterRefusal(this.#refusalHistory, refusal));
  }

  #recover(held: Generation): void {
    this.#refusalHistory = afterRecovery(this.#refusalHistory);
    if (!this.#isBeingReplaced)
      this.#requestIn(refreshAfterMs(held.lifeMs, this.#options.random()) - this.#ageOf(held));
  }

  #ageOf({ issuedAtMs }: Generation): number {
    return this.#options.clock() - issuedAtMs;
  }

  /** Whether a newer token is requested, or the last request failed. */
  get #isBeingReplaced(): boolean {
    return this.#pending !== null || this.#failures > 0;
  }

  #shouldReplace(refusal: RefusedToken): boolean {
    if (this.#isBeingReplaced || !this.#inUse.isRefusedAgain) return false;
    if (shouldGiveUp(afterRefusal(this.#refusalHistory, refusal))) {
      this.#requestIn(lastChanceMs - this.#inUse.refusedForMs); // another request would end the same way
      return false;
    }
    const isYoung = !this.#inUse.hasWorked && refusal.ageMs < youngMs;
    return !isYoung || this.#inUse.refusedForMs >= maxLateMs;
  }

  #replace(ageMs: number): void {
    this.#lastError ||= `${refusedWords('the token', this.#said)}, getting another`;
    // Two processes that revoke each other's tokens get them refused within a second, and this slows them down.
    this.#requestIn(minWaitMs - ageMs);
  }

  /** Buries the held token: no request with it gets through. The next token may work, or the previous one, as long as it is in use. */
  #bury(refusal: RefusedToken): TokenRefusal {
    const words = describeRefusals(this.#inUse.hasWorked, this.#said);
    const hasBefore = this.#inUse.hasBefore;
    const history = afterRefusal(this.#refusalHistory, refusal);
    if (!this.#isBeingReplaced && (!hasBefore || shouldGiveUp(history))) return { halt: this.#giveUp(words) };
    this.#lastError ||= `${refusedWords('the token', this.#said)}, getting another`;
    this.#inUse.dropLatest();
    this.#held!.isDead = true;
    if (!this.#isBeingReplaced) this.#requestIn(minWaitMs);
    this.#changed();
    return 'again';
  }

  /** Requests one token, however often it is called until the answer. */
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
    const held = this.#held;
    return held?.header === header && (held.isDead || this.#inUse.isDoubted);
  }

  #adopt({ header, lifeMs }: Issued): void {
    const before = this.#held;
    const isSame = before?.header === header;
    if (before?.refusal) this.#refusalHistory = afterRefusal(this.#refusalHistory, before.refusal);
    else if (before !== null) this.#refusalHistory = afterReplacement(this.#refusalHistory);
    const now = this.#options.clock();
    const assumedMs = lifeMs ?? this.#refusalHistory.lifeMs;
    // Servers and commands with a cache may give the same token twice. In that case its age continues.
    const issuedAtMs = isSame ? before.issuedAtMs : now;
    this.#held = {
      header,
      issuedAtMs,
      lifeMs: now - issuedAtMs + assumedMs,
      isLifeKnown: lifeMs !== null,
      refusal: null,
      isDead: false,
    };
    [this.#lastError, this.#failures, this.#sameAgain] = ['', 0, 0];
    if (!isSame) this.#issued++;
    // A token is not sent after its known life, which would only give a 401. Other tokens are sent until the API refuses them.
    this.#inUse.adopt(header, lifeMs === null ? Number.POSITIVE_INFINITY : now + lifeMs);
    this.#requestIn(refreshAfterMs(assumedMs, this.#options.random()));
    this.#changed();
  }

  #tryWithoutTheSame(): void {
    const reason = `${this.source} keeps giving the token that the API refused${this.#said && ` (${this.#said})`}`;
    if (++this.#sameAgain >= maxSameToken) this.#giveUp(reason);
    else this.#tryLater(reason, null);
  }

  #tryLater(reason: string, askedMs: number | null): void {
    this.#lastError = reason;
    this.#requestIn(retryDelayMs(this.#failures++, askedMs, this.#options.random()));
  }

  #giveUp(reason: string): string {
    clearTimeout(this.#askTimer);
    this.#refusedForGood = reason;
    this.#refusalHistory = noRefusals;
    this.#failures = 0;
    this.#sameAgain = 0;
    this.#inUse.clear();
    this.#changed();
    if (!this.#isStarting) this.#failed(reason);
    return reason;
  }
}
