const alarm = 8; // of the score: chance alone reaches it once in e^8 = 3,000 answers, or less often
const scoreMax = 2 * alarm;
const memory = 500; // answers after which a share is forgotten
const shares = { first: 0.05, least: 0.01, most: 0.35 };
const spellsMax = 8;
const slowestMaxMs = 1_000;
const slowestDecay = 0.999; // an answer

type Time = { from: number; to: number };

/**
 * Times in which more ids were not there than chance explains, by how many are not there otherwise (a cumulative sum, CUSUM). Where answers take
 * different times, false ones come among others that are true, so they need not be in a row. All times in ms by the same clock.
 */
export class Spells {
  #share = shares.first;
  #score = 0;
  #current: Time & { isSpell: boolean } = { from: 0, to: 0, isSpell: false };
  readonly #past: Time[] = [];
  #slowestMs = 0;

  /** How long answers take, the slowest of the last ones, at most a second: so long an answer may come that belongs to the same time. */
  get slowestMs(): number {
    return Math.min(slowestMaxMs, this.#slowestMs);
  }

  /** An object was deleted; its answer took `ms`. Called for nearly every answer, so it is cheap. */
  deleted(ms: number): void {
    this.#share -= this.#share / memory;
    this.#took(ms);
    if (this.#score === 0) return;
    this.#score = Math.max(0, this.#score - Math.LN2);
    if (this.#score === 0) this.#end();
  }

  /** An id was not there: sent and answered at this time. */
  absent({ from, to }: Time): void {
    if (this.#score === 0) this.#current = { from, to, isSpell: false };
    const share = Math.min(shares.most, Math.max(shares.least, this.#share));
    // In a spell, the share is halfway to all. So a deletion counts ln 2 against it.
    this.#score = Math.min(scoreMax, this.#score + Math.log((1 + share) / 2 / share));
    this.#current.from = Math.min(this.#current.from, from);
    this.#current.to = to;
    this.#current.isSpell ||= this.#score >= alarm;
    this.#share += (1 - this.#share) / memory;
    this.#took(to - from);
  }

  /** Whether there was one at some moment of this time. */
  cover({ from, to }: Time): boolean {
    const overlaps = (spell: Time) => from <= spell.to && to >= spell.from;
    return (this.#current.isSpell && overlaps(this.#current)) || this.#past.some(overlaps);
  }

  #took(ms: number): void {
    this.#slowestMs = Math.max(ms, this.#slowestMs * slowestDecay);
  }

  #end(): void {
    if (this.#current.isSpell) this.#past.push(this.#current);
    if (this.#past.length > spellsMax) this.#past.shift();
    this.#current = { from: 0, to: 0, isSpell: false };
  }
}
