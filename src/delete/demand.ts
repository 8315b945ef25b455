type Wish = { expected: number; askedMs: number };

/** A line in which requests wait, and its part in what leaves. */
type Waiting = { readonly length: number; readonly weight: number };

const wantsForMs = 250; // whoever is given less than it wants asks again sooner

/** Who wants room at the lanes. Lines that want some at the same time share it by their weights; one alone may have it all. */
export class Demand {
  readonly #wishes = new Map<Waiting, Wish>();
  #expected = 0;

  /** Requests of all lines that are being marked. */
  get expected(): number {
    return this.#expected;
  }

  expect(line: Waiting, requests: number): void {
    this.#expected += requests;
    this.#wishOf(line).expected += requests;
  }

  /** What the line, which wants room, may have of `all` places beside those it has taken. */
  share(line: Waiting, all: number, nowMs: number): number {
    const wish = this.#wishOf(line);
    wish.askedMs = nowMs;
    let weights = 0;
    for (const [other, { askedMs, expected }] of this.#wishes) {
      if (nowMs - askedMs <= wantsForMs) weights += other.weight;
      else if (expected === 0) this.#wishes.delete(other);
    }
    return Math.ceil((all * line.weight) / weights) - line.length - wish.expected;
  }

  #wishOf(line: Waiting): Wish {
    const known = this.#wishes.get(line);
    if (known !== undefined) return known;
    const wish = { expected: 0, askedMs: Number.NEGATIVE_INFINITY };
    this.#wishes.set(line, wish);
    return wish;
  }
}
