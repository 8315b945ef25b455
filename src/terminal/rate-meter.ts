const windowMs = 5_000;

/** How many ids were settled a second, over the last five seconds. */
export class RateMeter {
  #seen: { at: number; settled: number }[] = [];

  /** `at`: milliseconds; `settled`: all ids settled so far. */
  see(at: number, settled: number): void {
    this.#seen.push({ at, settled });
    while (this.#seen.length > 2 && this.#seen[0]!.at < at - windowMs) this.#seen.shift();
  }

  /** Null before there is anything to compare. */
  get perSecond(): number | null {
    const [first, last] = [this.#seen[0], this.#seen.at(-1)];
    if (!first || !last || last.at === first.at) return null;
    return Math.max(0, ((last.settled - first.settled) * 1_000) / (last.at - first.at));
  }
}
