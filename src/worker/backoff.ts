/** The wait after failures, in ms: after the first, and the maximum. `random`: from 0 to 1. */
type Waits = { firstMs: number; maxMs: number; random: () => number };

/** The wait after this many failures in a row: twice as long with each, minus a random part of up to a half. `random`: from 0 to 1. */
export function waitAfterMs({ firstMs, maxMs }: Omit<Waits, 'random'>, failures: number, random: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30)) * (0.5 + random / 2);
}

/** The wait after failures of one task. All times are in ms by one clock. */
export class Backoff {
  readonly #waits: Waits;
  #failures = 0;
  #until = 0;

  constructor(waits: Waits) {
    this.#waits = waits;
  }

  /** The number of failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** The level of the message about the last failure: only the first in a row is a warning. */
  get logLevel(): 'warn' | 'debug' {
    return this.#failures === 1 ? 'warn' : 'debug';
  }

  isWaiting(now: number): boolean {
    return now < this.#until;
  }

  failed(now: number): void {
    this.#failures++;
    this.#until = now + waitAfterMs(this.#waits, this.#failures, this.#waits.random());
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = 0;
  }
}
