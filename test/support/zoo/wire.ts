/** What is on its way: a list for each ms of the next 16 s; no answer takes longer. */
export class Wire<T extends { next: T | null }> {
  readonly #first = new Array<T | null>(ringSize).fill(null);
  readonly #last = new Array<T | null>(ringSize).fill(null);

  /** Comes at `ms`, rounded to a step of time, and not before the next one. */
  add(one: T, ms: number, now: number, stepMs: number): void {
    const rounded = stepMs === 1 ? Math.round(ms) : Math.round(ms / stepMs) * stepMs;
    const position = Math.max(now + stepMs, Math.min(rounded, now + maxMs)) & (ringSize - 1);
    one.next = null;
    if (this.#first[position] === null) this.#first[position] = one;
    else this.#last[position]!.next = one;
    this.#last[position] = one;
  }

  has(now: number): boolean {
    return this.#first[now & (ringSize - 1)] !== null;
  }

  /** The first that comes now; the others follow it. */
  take(now: number): T | null {
    const position = now & (ringSize - 1);
    const first = this.#first[position]!;
    if (first !== null) this.#first[position] = null;
    return first;
  }
}

const ringSize = 2 ** 14;
const maxMs = 16_000;
