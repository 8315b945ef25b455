const alarm = 8; // score from which a time is a spell: chance alone reaches it once in e^8 = 3,000 answers, or less often
const scoreMax = 2 * alarm;
const memory = 500; // number of answers after which a share is forgotten
const shares = { first: 0.05, min: 0.01, max: 0.35 };
const spellsMax = 8;

type Time = { from: number; to: number };

/**
 * Finds times in which more ids were refused than chance explains, given the usual share of such ids (a cumulative sum, CUSUM). If answers take
 * different times, false ones are mixed with true ones, so they need not be in a row. All times in ms by the same clock.
 */
export class Spells {
  #share: number;
  #score = 0;
  #current: Time & { isSpell: boolean } = { from: 0, to: 0, isSpell: false };
  readonly #past: Time[] = [];

  /** `accepted`: requests so far, while nothing was refused. */
  constructor(accepted: number) {
    this.#share = shares.first * (1 - 1 / memory) ** accepted;
  }

  /** Counts an accepted request. Called for nearly every answer, so it is cheap. */
  accept(): void {
    this.#share -= this.#share / memory;
    if (this.#score === 0) return;
    this.#score = Math.max(0, this.#score - Math.LN2);
    if (this.#score === 0) this.#end();
  }

  /** Counts a refused id, by when its request was sent and answered. */
  refuse({ from, to }: Time): void {
    if (this.#score === 0) this.#current = { from, to, isSpell: false };
    const share = Math.min(shares.max, Math.max(shares.min, this.#share));
    // In a spell, the share is halfway between the usual share and 1. So an accepted request counts ln 2 against it.
    this.#score = Math.min(scoreMax, this.#score + Math.log((1 + share) / 2 / share));
    this.#current.from = Math.min(this.#current.from, from);
    this.#current.to = to;
    this.#current.isSpell ||= this.#score >= alarm;
    this.#share += (1 - this.#share) / memory;
  }

  /** Whether there was a spell at some moment of this time. */
  cover({ from, to }: Time): boolean {
    const overlaps = (spell: Time) => from <= spell.to && to >= spell.from;
    return (this.#current.isSpell && overlaps(this.#current)) || this.#past.some(overlaps);
  }

  #end(): void {
    if (this.#current.isSpell) this.#past.push(this.#current);
    if (this.#past.length > spellsMax) this.#past.shift();
    this.#current = { from: 0, to: 0, isSpell: false };
  }
}
