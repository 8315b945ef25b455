const rules = {
  usual: 0.98, // the part of the former share of close requests that each further answer keeps
  kept: 0.99, // the part of the former refusals that each further refusal keeps
  refused: 5, // refusals of close requests that show strictness …
  times: 3, // … if they are this many times what chance explains, given the share of close requests at that time
  strictAnswers: 10_000, // number of answers for which strictness then holds, because one stall may look like it
};

/**
 * Whether a target refuses requests because they come close after one another, as a target does that allows no burst. Then a late process must
 * not catch up. Compares the share of close requests among refused requests with their share among all requests at that time.
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
