const rules = {
  kept: 0.999, // of what was counted before, with each further answer
  refused: 5, // so many refusals of requests that came close after another one, …
  times: 3, // … and so many times the share of the others
};

type Answers = { count: number; refused: number };

/**
 * Whether a target refuses requests because they come close after one another, as one does that allows no burst. Then a process that is late must
 * not catch up. Counts answers by whether their requests were close; while none are, it keeps its verdict.
 */
export class Strictness {
  readonly #close: Answers = { count: 0, refused: 0 };
  readonly #apart: Answers = { count: 0, refused: 0 };

  observe(wasClose: boolean, wasRefused: boolean): void {
    const answers = wasClose ? this.#close : this.#apart;
    answers.count = answers.count * rules.kept + 1;
    answers.refused = answers.refused * rules.kept + (wasRefused ? 1 : 0);
  }

  get isStrict(): boolean {
    const { count, refused } = this.#close;
    return (
      refused >= rules.refused &&
      refused / count >= rules.times * (this.#apart.refused / Math.max(1, this.#apart.count))
    );
  }
}
