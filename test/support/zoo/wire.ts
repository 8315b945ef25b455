/** What is on its way: a list for each ms of the next 16 s; no answer takes longer. */
export class Wire<T extends { next: T | null }> {
  readonly #first = new Array<T | null>(ringSize).fill(null);
  readonly #last = new Array<T | null>(ringSize).fill(null);

  /** Comes at `ms`, rounded to a step of time, and not before the next one. */
  add(one: T, ms: number, now: number, stepMs: number): void {
    const rounded = stepMs === 1 ? Math.round(ms) : Math.round(ms / stepMs) * stepMs;
    const slot = Math.max(now + stepMs, Math.min(rounded, now + longestMs)) & (ringSize - 1);
    one.next = null;
    if (this.#first[slot] === null) this.#first[slot] = one;
    else this.#last[slot]!.next = one;
    this.#last[slot] = one;
  }

  has(now: number): boolean {
    return this.#first[now & (ringSize - 1)] !== null;
  }

  /** The first that comes now; the others follow it. */
  take(now: number): T | null {
    const slot = now & (ringSize - 1);
    const first = this.#first[slot]!;
    if (first !== null) this.#first[slot] = null;
    return first;
  }
}

const ringSize = 2 ** 14;
const longestMs = 16_000;
