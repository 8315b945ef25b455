/** How long to wait after failures, in ms: the first time and at most. `random`: from 0 to 1. */
export type Waits = { firstMs: number; mostMs: number; random: () => number };

/** How long to wait after a failure, if there were so many before it: twice as long with each, and shorter by up to a half by chance. */
export function waitAfter(failures: number, { firstMs, mostMs, random }: Waits): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(failures, 30)) * (0.5 + random() / 2);
}

/** The wait after failures of one task. Times in ms by one clock. */
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
    this.#until = now + waitAfter(this.#failures++, this.#waits);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = 0;
  }
}
