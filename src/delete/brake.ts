import type { AnswerHeaders } from './answer.ts';
import { backoffMs } from './backoff.ts';
import { retryAfterMs } from './retry-after.ts';

const throttledBase = 2; // first fallback wait after a 429 without a time: up to 1 s or so
const longestHoldMs = 3_600_000;
const shortestAskedMs = 1_000;
const forgetAfterMs = 30_000;

/** Why nothing is sent for the moment, in words. */
export type Hold = { untilMs: number; reason: string };

/**
 * Holds back all requests of this process while the server wants that or cannot be reached. Waiting costs no id an attempt.
 * Answers that were on their way when it began don't lengthen it, unless the server names a later end.
 */
export class Brake {
  readonly #now: () => number;
  readonly #random: () => number;
  #hold: Hold = { untilMs: 0, reason: '' };
  #refusals = 0;
  #unreachableSince: number | null = null;

  /** `now`: monotonic milliseconds; `random`: from 0 to 1. */
  constructor(now: () => number, random: () => number) {
    this.#now = now;
    this.#random = random;
  }

  get isOn(): boolean {
    return this.remainingMs > 0;
  }

  get remainingMs(): number {
    return Math.max(0, this.#hold.untilMs - this.#now());
  }

  /** The reason of the present hold, or '' if nothing holds. */
  get reason(): string {
    return this.isOn ? this.#hold.reason : '';
  }

  /** How long the target has been out of reach, in ms; 0 while it answers. */
  get unreachableMs(): number {
    return this.#unreachableSince === null ? 0 : this.#now() - this.#unreachableSince;
  }

  /** The server answered anything that was no refusal. */
  answered(): void {
    this.#refusals = 0;
    this.#unreachableSince = null;
  }

  /** A 429, or a 503 that names a time. */
  refused(status: number, headers: AnswerHeaders): void {
    this.#unreachableSince = null;
    const asked = retryAfterMs(headers);
    if (asked !== null) {
      // No jitter here: the server chose this time, and calling earlier would only earn another refusal. Less than a second is no
      // answer to how long: then our own wait counts, which grows.
      const ms = asked >= shortestAskedMs ? asked : Math.max(asked, this.isOn ? 0 : this.#fallbackMs());
      this.#holdFor(ms, `the server answered ${status} and sent Retry-After ${Math.ceil(asked / 1000)}`);
    } else if (!this.isOn) {
      this.#holdFor(this.#fallbackMs(), `the server answered ${status} without saying for how long`);
    }
  }

  /** The target could not be reached. */
  unreachable(why: string): void {
    if (this.#now() - this.#hold.untilMs > forgetAfterMs) this.#unreachableSince = null; // an old story
    this.#unreachableSince ??= this.#now();
    if (!this.isOn) this.#holdFor(this.#fallbackMs(), `the API cannot be reached (${why})`);
  }

  #fallbackMs(): number {
    const step = throttledBase + Math.min(this.#refusals++, 6);
    return 100 + backoffMs(step, 0.5 + this.#random() / 2);
  }

  #holdFor(ms: number, reason: string): void {
    const untilMs = this.#now() + Math.min(ms, longestHoldMs);
    if (untilMs > this.#hold.untilMs) this.#hold = { untilMs, reason };
  }
}
