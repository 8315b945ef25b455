const rules = {
  usual: 0.98, // of the share of close requests that was known before, with each further answer
  kept: 0.99, // of the refusals that were counted before, with each further one
  refused: 5, // so many refusals of requests that came close after another one, …
  times: 3, // … and so many times what chance explains, as so many of all requests were close at that time
  ends: 1, // fewer than so many are left: it is not known any more
};

/**
 * Whether a target refuses requests because they come close after one another, as one does that allows no burst. Then a process that is late must
 * not catch up. Compares how many of the refused requests were close with how many of all requests were at that time.
 */
export class Strictness {
  #closeShare = 0;
  #refusedClose = 0;
  #byChance = 0;
  #isStrict = false;

  observe(wasClose: boolean, wasRefused: boolean): void {
    const close = wasClose ? 1 : 0;
    this.#closeShare = rules.usual * this.#closeShare + (1 - rules.usual) * close;
    if (!wasRefused) return;
    this.#refusedClose = rules.kept * this.#refusedClose + close;
    this.#byChance = rules.kept * this.#byChance + this.#closeShare;
    const isShown = this.#refusedClose >= rules.refused && this.#refusedClose >= rules.times * this.#byChance;
    this.#isStrict = isShown || (this.#isStrict && this.#refusedClose >= rules.ends);
  }

  get isStrict(): boolean {
    return this.#isStrict;
  }
}
