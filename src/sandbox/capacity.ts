/** A server that serves so many requests at once, each for so long; all others wait in a queue. */
export type Capacity = { atOnce: number; serviceMs: number };

/** How many requests were waiting or being served since the last reset. */
export type Load = { now: number; max: number; mean: number };

/** Lets requests in by the capacity, and counts them. Without a capacity it is left out of the way. */
export class CapacityLimiter {
  capacity: Capacity | null;
  readonly #clock: () => number;
  #line: (() => void)[] = [];
  #served = 0; // at this moment
  #inside = 0;
  #max = 0;
  #requestMs = 0; // the sum over all requests of the time they were inside
  #since: number;
  #changedAt: number;

  /** `clock`: monotonic milliseconds. */
  constructor(capacity: Capacity | null, clock: () => number) {
    this.capacity = capacity;
    this.#clock = clock;
    this.#since = this.#changedAt = clock();
  }

  /** Calls `serve` when its service is over. */
  enter(serve: () => void): void {
    this.#count(1);
    this.#line.push(serve);
    this.#admit();
  }

  /** The mean is over time: who was inside for long weighs more. */
  get load(): Load {
    this.#count(0);
    const lasted = this.#changedAt - this.#since;
    return { now: this.#inside, max: this.#max, mean: lasted > 0 ? this.#requestMs / lasted : this.#inside };
  }

  resetLoad(): void {
    this.#since = this.#changedAt = this.#clock();
    this.#requestMs = 0;
    this.#max = this.#inside;
  }

  /** Drops the requests that wait. */
  close(): void {
    this.#line = [];
  }

  #admit(): void {
    const { atOnce, serviceMs } = this.capacity ?? { atOnce: Number.POSITIVE_INFINITY, serviceMs: 0 };
    while (this.#served < atOnce) {
      const next = this.#line.shift();
      if (next === undefined) return;
      this.#served += 1;
      setTimeout(() => this.#leave(next), serviceMs);
    }
  }

  #leave(serve: () => void): void {
    serve();
    this.#served -= 1;
    this.#count(-1);
    this.#admit();
  }

  #count(change: number): void {
    const moment = this.#clock();
    this.#requestMs += this.#inside * (moment - this.#changedAt);
    this.#changedAt = moment;
    this.#inside += change;
    this.#max = Math.max(this.#max, this.#inside);
  }
}
