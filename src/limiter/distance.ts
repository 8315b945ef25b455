/** What is added to usual times because of the distance of Redis, in ms; see `Distance`. */
export type Spans = Readonly<Record<'answerMs' | 'leadMs' | 'aheadMs', number>>;

/** Those of a near Redis. */
export const near: Spans = { answerMs: 0, leadMs: 0, aheadMs: 0 };

/** Round trips up to this many ms are those of a near Redis, for which all usual times are made. */
const nearMs = 20;
const kept = 20; // the number of round trips that are remembered
const usualShare = 0.5;
const slowShare = 0.8; // of them: a stall of this process or of Redis is not the distance …
const inARow = 2; // … but so many in a row may be

/**
 * The distance of Redis, measured by the round trips of this process, and how much longer everything takes because of it. All times that depend on
 * it are derived here: each is added to a usual time, and is 0 while Redis is near.
 */
export class Distance implements Spans {
  readonly #roundTrips: number[] = [];
  #usualMs = 0;
  #beyondMs = 0;

  /** Records how long Redis took to answer one call, in ms. */
  observe(ms: number): void {
    this.#roundTrips.push(ms);
    if (this.#roundTrips.length > kept) this.#roundTrips.shift();
    const sorted = [...this.#roundTrips].sort((one, other) => one - other);
    const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!;
    this.#usualMs = at(usualShare);
    const latest = Math.min(...this.#roundTrips.slice(-inARow));
    this.#beyondMs = Math.max(0, at(slowShare) - nearMs, this.#roundTrips.length < inARow ? 0 : latest - nearMs);
  }

  /** The usual round trip, in ms; 0 before the first. */
  get roundTripMs(): number {
    return this.#usualMs;
  }

  /** How much later an answer of Redis is used than from a near one, if the question had to wait for the answer before it. */
  get answerMs(): number {
    return 2 * this.#beyondMs;
  }

  /**
   * How long before its time a permit has to be leased, so that its request is marked by then: the lease travels here, its chunk waits for the answer
   * to an update, and the mark travels there and back.
   */
  get leadMs(): number {
    return 2.5 * this.#beyondMs;
  }

  /** How much further ahead permits are leased: there are enough until the next lease. A mark may have to wait as long for its permit. */
  get aheadMs(): number {
    return 3.5 * this.#beyondMs;
  }
}
