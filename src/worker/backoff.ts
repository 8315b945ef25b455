/** How long to wait after failures, in ms: the first time and at most. `random`: from 0 to 1. */
type Waits = { firstMs: number; mostMs: number; random: () => number };

/** The wait after failures of one task: twice as long with each, and shorter by up to a half by chance. Times in ms by one clock. */
export class Backoff {
  readonly #waits: Waits;
  #failures = 0;
  #until = 0;

  constructor(waits: Waits) {
    this.#waits = waits;
  }

  /** In a row. */
  get failures(): number {
    return this.#failures;
  }

  isWaiting(now: number): boolean {
    return now < this.#until;
  }

  failed(now: number): void {
    const { firstMs, mostMs, random } = this.#waits;
    this.#until = now + Math.min(mostMs, firstMs * 2 ** Math.min(this.#failures, 30)) * (0.5 + random() / 2);
    this.#failures++;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = 0;
  }
}
