const windowMs = 5 * 60_000;
const failuresAtMost = 10; // of one address
const allFailuresAtMost = 300; // of all addresses together: guessing does not get faster with more of them
const addressesAtMost = 10_000;

/** Counts failed logins for five minutes. `clock`: monotonic ms. */
export class LoginLimit {
  readonly #clock: () => number;
  readonly #failures = new Map<string, { count: number; until: number }>();
  #all = { count: 0, until: 0 };

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** For how many seconds this address may not try again; 0 = it may. */
  waitOf(address: string): number {
    const now = this.#clock();
    const own = this.#failures.get(address);
    const isFull = own !== undefined && own.until > now && own.count >= failuresAtMost;
    const areAllFull = this.#all.until > now && this.#all.count >= allFailuresAtMost;
    const until = Math.max(isFull ? own.until : 0, areAllFull ? this.#all.until : 0);
    return Math.ceil(Math.max(0, until - now) / 1_000);
  }

  failed(address: string): void {
    const now = this.#clock();
    for (const [known, { until }] of this.#failures) if (until <= now) this.#failures.delete(known);
    const own = this.#failures.get(address) ?? { count: 0, until: now + windowMs };
    if (this.#failures.size < addressesAtMost) this.#failures.set(address, { ...own, count: own.count + 1 });
    if (this.#all.until <= now) this.#all = { count: 0, until: now + windowMs };
    this.#all.count += 1;
  }
}
