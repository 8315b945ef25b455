const rules = {
  usual: 0.98, // of the share of close requests that was known before, with each further answer
  kept: 0.99, // of the refusals that were counted before, with each further one
  refused: 5, // so many refusals of requests that came close after another one, …
  times: 3, // … and so many times what chance explains, as so many of all requests were close at that time
  strictAnswers: 10_000, // then it is known for so many answers: one stall may look like it
};

/**
 * Whether a target refuses requests because they come close after one another, as one does that allows no burst. Then a process that is late must
 * not catch up. Compares how many of the refused requests were close with how many of all requests were at that time.
 */
export class Strictness {
  #closeShare = 0;
  #refusedClose = 0;
  #byChance = 0;
  #strictAnswers = 0;

  observe(wasClose: boolean, wasRefused: boolean): void {
    const close = wasClose ? 1 : 0;
    this.#closeShare = rules.usual * this.#closeShare + (1 - rules.usual) * close;
    this.#strictAnswers = Math.max(0, this.#strictAnswers - 1);
    if (!wasRefused) return;
    this.#refusedClose = rules.kept * this.#refusedClose + close;
    this.#byChance = rules.kept * this.#byChance + this.#closeShare;
    const isShown = this.#refusedClose >= rules.refused && this.#refusedClose >= rules.times * this.#byChance;
    if (!isShown) return;
    [this.#refusedClose, this.#byChance] = [0, 0];
    this.#strictAnswers = rules.strictAnswers;
  }

  get isStrict(): boolean {
    return this.#strictAnswers > 0;
  }
}
