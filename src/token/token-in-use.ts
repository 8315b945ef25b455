import { plural } from '../format.ts';

/**
 * The meaning of a refusal for the token that was sent. 'elsewhere': other requests with this token get through, so one server is in trouble. 'again':
 * the token is in doubt, and is occasionally asked again. 'dead': it was asked again for long enough, and no request got through.
 */
export type Refusal = 'elsewhere' | 'again' | 'dead';

/** One header, and the API's answers to it. All times by the clock, in ms. */
type Trial = {
  readonly header: string;
  expiresAtMs: number;
  /** How many requests with it got through, and when the last of these was sent. */
  accepted: number;
  workedAtMs: number;
  /** Refusals in a row. */
  refusals: number;
  /** Since when nothing gets through, including with earlier headers that never worked; null: something does. */
  refusedSinceMs: number | null;
  /** The time from which one request may be sent with it; null: every request may be. */
  askAtMs: number | null;
  /** When that began, and the number of requests sent since. */
  askingSinceMs: number;
  asked: number;
};

const doubtAfterRefusals = 10;
const doubtAfterMs = 2_000; // applies to fewer requests, but to three at least
const patienceMs = 8_000;
const minRefusals = 5;
const firstWaitMs = 100;
const maxWaitMs = 1_000;

/**
 * The header that requests are sent with. A 401 alone does not prove that a token is dead: an API may learn late of a new one, and one of its servers
 * may refuse tokens that the others accept. So a token that refusals put in doubt is asked again, with one request at a time and growing waits. As
 * soon as one gets through, all requests are sent again. If none gets through for 8 s, after at least five refusals, the token is dead. That takes at
 * most 20 requests in addition to those in flight.
 *
 * A new token is tried in the same way while the previous token still works: all other requests are sent with the previous one.
 */
export class TokenInUse {
  readonly #clock: () => number;
  #latest: Trial | null = null;
  #before: Trial | null = null; // works, and is used until the latest token does

  /** `clock`: monotonic ms. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** The latest header, even while it is in doubt; null: there is none, or it has expired. */
  get latest(): string | null {
    return this.#isUsable(this.#latest) ? this.#latest.header : null;
  }

  /** Whether refusals put the latest token in doubt. */
  get isDoubted(): boolean {
    return this.#latest !== null && this.#latest.refusals > 0 && this.#latest.askAtMs !== null;
  }

  get hasWorked(): boolean {
    return this.accepted > 0;
  }

  /** How many requests with the latest header got through. */
  get accepted(): number {
    return this.#latest?.accepted ?? 0;
  }

  /** When the last request with this header that got through was sent; -∞: none did, or it is no longer in use. */
  workedAtMs(header: string): number {
    return this.#trialOf(header)?.workedAtMs ?? Number.NEGATIVE_INFINITY;
  }

  /** The time for which no request with it has got through, in ms. */
  get refusedForMs(): number {
    const since = this.#latest?.refusedSinceMs ?? null;
    return since === null ? 0 : this.#clock() - since;
  }

  /** Whether the previous token is still in use, in addition to the latest one. */
  get hasBefore(): boolean {
    return this.#isUsable(this.#before);
  }

  /** The time until a request may be sent, in ms; 0 = now. */
  get waitMs(): number {
    return Math.max(0, (this.#latest?.askAtMs ?? 0) - this.#clock());
  }

  /** Takes a new token into use, until it expires by the clock. For the same token, only the expiry changes. */
  adopt(header: string, expiresAtMs = Number.POSITIVE_INFINITY): void {
    if (this.#latest?.header === header) {
      this.#latest.expiresAtMs = expiresAtMs;
      return;
    }
    const [replaced, held] = [this.#latest, this.#before ?? this.#latest];
    const isReplacedForRefusals = this.isDoubted;
    this.#before = this.#isUsable(held) && held.accepted > 0 && held.askAtMs === null ? held : null;
    const isTried = this.#before !== null || isReplacedForRefusals;
    this.#latest = newTrial(header, expiresAtMs, isTried ? this.#clock() : null);
    if (isReplacedForRefusals && replaced!.accepted === 0) this.#latest.refusedSinceMs = replaced!.refusedSinceMs;
  }

  /** Stops using the latest token; the previous one stays, if it is still in use. */
  dropLatest(): void {
    [this.#latest, this.#before] = [this.#before, null];
  }

  clear(): void {
    [this.#latest, this.#before] = [null, null];
  }

  /** Returns the header for the next request; null: sending is not allowed now. */
  authorization(): string | null {
    const latest = this.#latest;
    if (this.#isUsable(latest) && (latest.askAtMs === null || this.#clock() >= latest.askAtMs)) return latest.header;
    return this.#isUsable(this.#before) ? this.#before.header : null;
  }

  /** Notes that a request with this header is being sent. */
  sent(header: string): void {
    const latest = this.#latest;
    if (latest?.header === header && latest.askAtMs !== null) this.#askLater(latest);
  }

  /** Notes that a request with this header, which was sent at `sentAtMs`, got through. Returns true if all requests may be sent again. */
  noteAccepted(header: string, sentAtMs: number): boolean {
    const trial = this.#trialOf(header);
    if (trial === null) return false;
    trial.accepted++;
    if (sentAtMs > trial.workedAtMs) trial.workedAtMs = sentAtMs;
    trial.refusals = 0;
    trial.refusedSinceMs = null;
    if (trial.askAtMs === null) return false;
    trial.askAtMs = null;
    this.#before = null;
    return true;
  }

  /** Notes that the API refused this header. */
  refused(header: string): Refusal {
    const trial = this.#trialOf(header);
    if (trial === null) return 'again'; // another token has replaced it
    const now = this.#clock();
    trial.refusals++;
    trial.refusedSinceMs ??= now;
    if (trial.askAtMs === null && this.#isOneServer(trial)) return 'elsewhere';
    if (trial === this.#before) {
      this.#before = null;
      return 'again';
    }
    if (trial.askAtMs === null) {
      trial.asked = 0;
      trial.askingSinceMs = now;
      this.#askLater(trial);
    }
    const isDead = now - trial.refusedSinceMs >= patienceMs && trial.refusals >= minRefusals;
    return isDead ? 'dead' : 'again';
  }

  /**
   * Whether the latest token was refused again when it was asked again, so its refusals are not only from one server that many requests had reached.
   */
  get isRefusedAgain(): boolean {
    const latest = this.#latest;
    return this.isDoubted && latest!.asked > 1 && this.#clock() - latest!.askingSinceMs >= firstWaitMs;
  }

  #isUsable(trial: Trial | null): trial is Trial {
    return trial !== null && (trial.expiresAtMs === Number.POSITIVE_INFINITY || this.#clock() < trial.expiresAtMs);
  }

  #trialOf(header: string): Trial | null {
    if (this.#latest?.header === header) return this.#latest;
    return this.#before?.header === header ? this.#before : null;
  }

  #isOneServer({ accepted, refusals, refusedSinceMs }: Trial): boolean {
    if (accepted === 0 || refusals >= doubtAfterRefusals) return false;
    return refusals < 3 || this.#clock() - refusedSinceMs! < doubtAfterMs;
  }

  #askLater(trial: Trial): void {
    trial.askAtMs = this.#clock() + Math.min(maxWaitMs, firstWaitMs * 2 ** trial.asked++);
  }
}

function newTrial(header: string, expiresAtMs: number, askAtMs: number | null): Trial {
  const askingSinceMs = askAtMs ?? 0;
  return {
    header,
    expiresAtMs,
    askAtMs,
    askingSinceMs,
    accepted: 0,
    workedAtMs: Number.NEGATIVE_INFINITY,
    refusals: 0,
    refusedSinceMs: null,
    asked: 0,
  };
}

/** Describes for people why nothing is sent while a token is in doubt. `said`: the answer of the API in words, or ''. */
export function describeDoubt(inUse: TokenInUse, said: string): string {
  const seconds = Math.ceil(inUse.waitMs / 1_000);
  return `${refusedWords('the token', said)}; asking again with the same one in ${seconds} s`;
}

/** Describes a refusal for people: `the API refused the token (401: Token used before issued)`. */
export function refusedWords(what: string, said: string): string {
  return `the API refused ${what}${said && ` (${said})`}`;
}

/** What got through with a token before it was refused for good, and what to do if only some objects are refused. '' if nothing did. */
export function describeAccepted(requests: number): string {
  if (requests === 0) return '';
  return (
    `; ${plural(requests, 'requests')} got through with it before. If the API refuses it for the last ids only, cancel the run and retry it with ` +
    '--on-status 401=failed'
  );
}
