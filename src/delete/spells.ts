const alarm = 8; // score from which a time is a spell: chance alone reaches it once in e^8 = 3,000 answers, or less often
const scoreMax = 2 * alarm;
const memory = 500; // number of answers after which a share is forgotten
const shares = { first: 0.05, min: 0.01, max: 0.35 };
const spellsMax = 8;
const slowestMaxMs = 1_000;
const slowestDecay = 0.999; // per answer

type Time = { from: number; to: number };

/**
 * Finds times in which more ids were not there than chance explains, given the usual share of such ids (a cumulative sum, CUSUM). If answers take
 * different times, false ones are mixed with true ones, so they need not be in a row. All times in ms by the same clock.
 */
export class Spells {
  #share = shares.first;
  #score = 0;
  #current: Time & { isSpell: boolean } = { from: 0, to: 0, isSpell: false };
  readonly #past: Time[] = [];
  #slowestMs = 0;

  /** The time of the slowest recent answer, at most a second. For this long, an answer that belongs to the same time can still come. */
  get slowestMs(): number {
    return Math.min(slowestMaxMs, this.#slowestMs);
  }

  /** Counts a deletion whose answer took `ms`. Called for nearly every answer, so it is cheap. */
  deleted(ms: number): void {
    this.#share -= this.#share / memory;
    this.#took(ms);
    if (this.#score === 0) return;
    this.#score = Math.max(0, this.#score - Math.LN2);
    if (this.#score === 0) this.#end();
  }

  /** Counts an id that was not there, by when its request was sent and answered. */
  absent({ from, to }: Time): void {
    if (this.#score === 0) this.#current = { from, to, isSpell: false };
    const share = Math.min(shares.max, Math.max(shares.min, this.#share));
    // In a spell, the share is halfway between the usual share and 1. So a deletion counts ln 2 against it.
    this.#score = Math.min(scoreMax, this.#score + Math.log((1 + share) / 2 / share));
    this.#current.from = Math.min(this.#current.from, from);
    this.#current.to = to;
    this.#current.isSpell ||= this.#score >= alarm;
    this.#share += (1 - this.#share) / memory;
    this.#took(to - from);
  }

  /** Whether there was a spell at some moment of this time. */
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
